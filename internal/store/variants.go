package store

// Variants selects alternative behavior where the protocol is ambiguous, or where the published protocol
// differs from the real store (protocol.md 2.3, 2.6, 12). With the zero Variants, the store behaves
// as the tests of the SDKs expect a real broker to behave.
type Variants struct {
	// Requests.
	AnyCase              bool // verbs and options may be in lower or mixed case
	TimestampOnAll       bool // a `__ts` in a request with any verb is checked, not only with SET
	ConditionBeforeFence bool // NX and NEX are checked before the fencing token
	FenceIgnoresNode     bool // tokens that differ only in their node are equal
	KeepTTL              bool // SET without PX keeps the key's earlier expiry

	// Replies.
	BareMinusOne      bool // `-1` instead of `:-1`
	ErrorColon        bool // `-ERR: text` instead of `-ERR text`
	ErrorUnframed     bool // an error has no CR LF
	BlobUnframed      bool // the reply to GET has no CR LF after the value
	NullUnderscore    bool // `_` instead of `$-1`
	NoStatus          bool // no `__stat`
	NoProtocolVersion bool // no `__protVer`
	NoContentType     bool // no content type on replies and notifications
	PaddedVersions    bool // HLCs padded with zeros, as the SDKs write them
	DelNoVersion      bool // no `__ts` with `:1` in reply to DEL and VDEL
	DeleteNewVersion  bool // a deletion gets a new version, in the reply `:1` and in notifications
	MismatchVersion   bool // the key's `__ts` with `:-1` in reply to VDEL
	RepeatedWatchZero bool // `:0` in reply to KEYNOTIFY if the client is already registered

	// Notifications.
	NotifyDEL       bool // DEL instead of DELETE
	NotifyEXPIRED   bool // EXPIRED instead of DELETE when a key expires
	NotifyNoValue   bool // notifications of SET have no VALUE
	NotifyNoVersion bool // no `__ts` in any notification
	DeleteNoVersion bool // no `__ts` in notifications of deletions
	SilentRenewal   bool // no notification of a SET with NEX that rewrites the same value

	// SCAN.
	NoScan        bool // SCAN gets `unknown command`
	ScanEmptyPage bool // the first page is empty and has a token
	ScanGlobBytes bool // patterns match bytes, as in authorization rules; keys need not be UTF-8
	ScanChains    bool // there are three chains, listed one after the other, each in byte order
}
