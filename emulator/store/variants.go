package store

// Variants selects other readings of the protocol: where it leaves something open, or where
// its published document differs from the real store (protocol.md 2.3, 2.6, 12). The zero
// Variants behaves as the SDKs' tests expect of a real broker.
type Variants struct {
	// Requests.
	AnyCase              bool // verbs and option words in any case, not only upper
	TimestampOnAll       bool // `__ts`, if it is sent, is checked on every verb, not only on SET
	ConditionBeforeFence bool // NX and NEX are checked before the fencing token
	FenceIgnoresNode     bool // tokens that differ only in their node are equal
	KeepTTL              bool // SET without PX keeps the key's earlier expiry

	// Replies.
	BareMinusOne      bool // `-1` for `:-1`
	ErrorColon        bool // `-ERR: text` for `-ERR text`
	ErrorUnframed     bool // an error without CR LF
	BlobUnframed      bool // the blob of a GET without its last CR LF
	NullUnderscore    bool // `_` for `$-1`
	NoStatus          bool // no `__stat`
	NoProtocolVersion bool // no `__protVer`
	NoContentType     bool // no content type, also on notifications
	PaddedVersions    bool // HLCs padded with zeros, as the SDKs write them
	DelNoVersion      bool // no `__ts` with `:1` of DEL and VDEL
	DeleteNewVersion  bool // a deletion has a new version, in `:1` and in notifications
	MismatchVersion   bool // the key's `__ts` with `:-1` of VDEL
	RepeatedWatchZero bool // `:0` for a KEYNOTIFY that is already registered

	// Notifications.
	NotifyDEL       bool // the word DEL for DELETE
	NotifyEXPIRED   bool // the word EXPIRED when a key expired
	NotifyNoValue   bool // SET without VALUE
	NotifyNoVersion bool // no `__ts` at all
	DeleteNoVersion bool // no `__ts` with a deletion
	SilentRenewal   bool // no notification for a NEX that rewrites the same value

	// SCAN.
	NoScan        bool // `unknown command`
	ScanEmptyPage bool // the first page is empty and has a token
	ScanGlobBytes bool // patterns match bytes, as those of authorization rules do; keys need not be UTF-8
	ScanChains    bool // keys come chain by chain, of three; within a chain in the order of their bytes
}
