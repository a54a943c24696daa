// Package emulator provides a state store that does not need Azure IoT Operations, for tests and
// for `sscli serve`. It combines an MQTT broker and a state store.
// It answers requests as the real store does, as far as the real store's
// behavior is known.
//
// A test begins with [Start]:
//
//	func TestSetpoint(t *testing.T) {
//		store := emulator.Start(t)
//		run(store.URL()) // mqtt://127.0.0.1:45123
//		entry, ok := store.Get("setpoint")
//		…
//	}
//
// [Server.FastForward] lets keys and sessions expire without waiting, and [Server.AgeKeys] lets keys expire
// while the clock, and so the versions, stay; [Server.AddFault] lets requests, notifications and connections
// fail, and counts how often; [Server.Intercept] drops, delays, repeats and alters replies by a function;
// [Server.DropAll] breaks connections; [Server.RefuseConnect] and [Server.RefuseReauth] refuse clients;
// [Server.Reset] begins again; [Server.Await] waits for a state. A program that is not a test calls [New]
// instead of Start.
//
// All watchers are notified of changes in the same order, and a client is notified of a change
// before it gets the reply to any later request. A client that cannot keep up is disconnected
// with 0x97. Replies and notifications to a connected client are never dropped silently, except
// those that exceed the client's Maximum Packet Size: MQTT 5 (3.1.2.11.4) requires this. The
// emulator is a single node.
//
// With [Options].Data the store is kept in a file. A reply or notification is sent only after all
// earlier changes are in the file, so that no client sees a value that a crash could undo. If the
// file cannot be written, the server stops answering requests and ends: see [Server.Done].
//
// For all other topics, the broker is an ordinary MQTT broker with sessions, wills, retained
// messages and shared subscriptions, for MQTT 5 and 3.1.1. It queues messages, in order, for a
// session whose client is offline; if the queue is full, the publisher gets 0x97. Requests to the
// store need MQTT 5, because they use properties that MQTT 3.1.1 does not have.
//
// # Support matrix
//
// Each row says what the store does, how we know it, and which option changes it.
// "documented": the published protocol says so. "SDKs": Microsoft's SDKs do so, or test for it
// against a real broker; where the SDKs and the protocol differ, the SDKs win. "draft": an
// unpublished draft of Microsoft's Rust SDK says so. "assumed": our guess, without a source.
//
// Requests:
//
//	RESP3 array of blobs, else `syntax error`             documented
//	  a length of -0                                      assumed: `syntax error`
//	verbs and options in upper case only                  documented  Variants.AnyCase
//	  lower-case verb: `unknown command`, option:         assumed
//	  `syntax error`
//	NX, NEX without an argument, PX n after them          SDKs
//	  PX before the condition                             assumed: accepted
//	  NX with NEX, an option twice, PX 0, PX 1.5          assumed: `syntax error`
//	  a value after NEX                                   assumed: `wrong number of arguments`
//	  PX of more than 292 years                           assumed: never expires
//	SET without PX ends an earlier expiry                 assumed     Variants.KeepTTL
//	`__ts` required on SET, ignored elsewhere             documented  Variants.TimestampOnAll
//	`__ts`, `__ft` more than 60 s ahead are refused       documented  Options.Skew
//	  a sign, an empty node: `malformed timestamp`        assumed
//	`__ts` or `__ft` given twice: the first counts        assumed
//	`aio-persistence` on SET keeps the key on disk        documented  Options.Data
//	  a later SET without it ends this                    assumed
//	order of the checks, see the store's Do               assumed
//	quota of keys                                         documented  Options.MaxKeys
//	authorization by rules that only allow                documented  Options.Policy
//	  only if clients must log in                         documented  ParsePolicy
//	  CONNACK, PUBACK, SUBACK 0x87, `not authorized`      documented
//	  MQTT 3.1.1: a refused message gets its PUBACK       documented
//	  new rules disconnect all clients                    documented  Server.SetPolicy
//	  with reason 0x98; sessions keep subscriptions       assumed
//	  the attributes of one set all hold                  documented  Policy.Attributes
//	  X.509: those of the first subject in the table      documented
//	  a rule or a set that is empty is for nobody         assumed
//	  wildcards in usernames and clientIds: literal       assumed
//	  clientIds of Connect: a pattern, as of keys         documented; beyond a last `*`: assumed
//	  clientIds of Publish, Subscribe: a condition        assumed
//	  a filter is allowed if one listed filter            assumed
//	  matches all its topics
//	  a first wildcard matches no level with $ first      assumed
//	  $share/GROUP/FILTER is judged by FILTER             SDKs
//	  a token is a whole level of a topic                 documented; else it matches nothing: assumed
//	  a value with a slash is not a level                 assumed
//	  a token without a value matches nothing             assumed
//	  values are literal, also in patterns                documented
//	  patterns of keys: `*`, `?`, `[0-9]`                 documented; the rest as in SCAN: assumed
//	  keys that are not UTF-8: only `*` and Binary        assumed
//	  tokens only in patterns, not in String              documented
//	  methods and key types in lower case                 assumed
//	  several resources on one port add up                assumed
//	  ParseRules: no user name, only the rules for `*`    assumed
//	  ParseRules: {principal.clientId} if it is the user  assumed
//	SCAN pattern [token], last page without a token       SDKs (beta) Variants.NoScan, ScanEmptyPage
//	  the whole key matches as in Rust's crate `glob`     draft       Variants.ScanGlobBytes
//	  keys that are not UTF-8 are never listed            draft       Variants.ScanGlobBytes
//	  a pattern that is not UTF-8 matches nothing         draft       Variants.ScanGlobBytes
//	  a token is digits;digits;bytes, the first the chain draft       Variants.ScanChains
//	  one chain, in the order of bytes, page of 100       assumed     Variants.ScanChains, Options.ScanPage
//	  a malformed token: `syntax error`                   draft; its text: assumed
//	  a pattern such as `a**` or `[a`: `syntax error`     assumed
//	  a page examines at most 10,000 keys, may be empty   assumed
//	  a pattern of more than 1024 bytes: `syntax error`   assumed
//	  keys that the client may not read are omitted       assumed
//	a key of more than 65,535 bytes is refused            assumed, and so is the text
//
// Replies:
//
//	`:-1` for an unmet condition, not `-1`                SDKs        Variants.BareMinusOne
//	`-ERR text` with CR LF                                SDKs        Variants.ErrorColon, ErrorUnframed
//	a blob with CR LF at its end                          documented  Variants.BlobUnframed
//	`$-1` for a missing key                               documented  Variants.NullUnderscore
//	`+OK` for a KEYNOTIFY that is registered already      assumed     Variants.RepeatedWatchZero
//	`__stat` 200, also with errors                        SDKs        Variants.NoStatus
//	`__protVer` 1.0, content type application/octet-stream assumed    Variants.NoProtocolVersion, NoContentType
//	`__ts` of SET, refused SET, GET                       SDKs
//	`__ts` of DEL and VDEL: the deleted value's version   documented  Variants.DeleteNewVersion, DelNoVersion
//	no `__ts` on `:0`, KEYNOTIFY, SCAN, errors            assumed
//	no `__ts` on `:-1` of VDEL                            assumed     Variants.MismatchVersion
//	versions greater than `__ts` and all earlier ones     documented
//	versions not padded, node StateStore                  documented  Variants.PaddedVersions
//
// Fencing:
//
//	rules 1 to 15 and 17 of the published table           documented, SDKs
//	a bad token wins over a failing NX or NEX             assumed     Variants.ConditionBeforeFence
//	equal readings of different nodes order by node       assumed     Variants.FenceIgnoresNode
//	`__ft` is ignored on GET, KEYNOTIFY, SCAN             SDKs
//
// Notifications:
//
//	by client id and exact key, also for absent keys      SDKs
//	  a key too long for an MQTT topic is refused         assumed, and so is the text
//	one STOP ends all registrations for the key           assumed
//	end at disconnect and take-over, never queued         documented
//	sent once, with or without a subscription             SDKs
//	for the watcher's own writes too, before the reply    SDKs (order: assumed)
//	`DELETE` for DEL, VDEL and expiry                     SDKs        Variants.NotifyDEL, NotifyEXPIRED
//	`SET` always with VALUE                               SDKs        Variants.NotifyNoValue
//	`__ts`                                                documented  Variants.NotifyNoVersion
//	  of a deletion: the deleted value's version          assumed     Variants.DeleteNoVersion, DeleteNewVersion
//	a NEX that rewrites the same value notifies           assumed     Variants.SilentRenewal
//	refused SET, `:0`, `:-1` notify nobody                assumed
//	expiry is prompt                                      assumed     Server.FastForward
//
// MQTT:
//
//	QoS 0 or 2: no answer; QoS 2 still gets its PUBREC    documented
//	no response topic or correlation data: PUBACK only    documented
//	a forbidden response topic: DISCONNECT                documented; reason 0x90: assumed
//	  with every QoS                                      assumed
//	PUBACK before the reply                               assumed     Action.PubackLast
//	requests reach no subscriber of the request topic     assumed
//	  a will for the request topic is dropped             assumed
//	a request over its message expiry is discarded        documented  Options.Latency, Action.Delay
//	replies go to all subscribers, with QoS 1 at most     SDKs
//	replies are kept for a session whose client is away   assumed
//	Retain is ignored on requests                         assumed
//	more than 1024 unacknowledged requests: 0x93          MQTT 5      Limits.ReceiveMaximum
//	take-over 0x8E, bad login 0x86, shutdown 0x8B         MQTT 5
//	bad service-account token 0x87, other method 0x8C     assumed     Options.CheckToken
//	an expired token closes its connection                documented  Login.Expires
//	user name with a certificate: its common name         documented
//	  another user name in CONNECT is ignored             assumed
//	without a login: no user name, whatever CONNECT says  assumed     Options.CheckLogin
//	a client id in use by another user: CONNACK 0x85      assumed
//	user name with a token: its subject                   assumed     Login.User
//	re-authentication: AUTH 0x00, 0x18 or DISCONNECT      SDKs        Server.RefuseReauth
//	WebSockets at the path /mqtt, and at /                assumed     Options.WebSocket
//	every client may use every topic, else 0x87           documented  Options.Policy
//	ParseRules: no topic of the store without a rule      assumed
//	  below `clients/`, a client may subscribe only to    assumed
//	  its own topics, without wildcards for other clients
//	  clients may not publish below `clients/`: 0x87      assumed
//	  another client's response topic: PUBACK 0x87        assumed
//	with a policy: a response topic that the client may   assumed
//	  not subscribe to, or that is not its own and that
//	  it may not publish to: PUBACK 0x87
//	new rules: subscriptions, queued messages, wills and  assumed     Server.SetPolicy
//	  delayed requests that they do not allow are dropped
//	wildcards in a response topic: DISCONNECT 0x82        MQTT 5
//	CONNACK, PUBACK, DISCONNECT with other reasons        –           Server.RefuseConnect, Action
//
// A store that is attached to another broker ([Attach]) is a client of that broker. Because a client
// knows less and can do less than a broker, an attached store differs from a [Server] in these points:
//
//	the sender of a request: `__srcId`, else the response topic; no answer if they differ
//	a client that gives another client's id in both can end that client's KEYNOTIFY, or use its rules
//	registrations outlive the connection of the client, until the broker reports that nobody is subscribed
//	requests wait while the store does not know whether another one answers
//	a forbidden response topic gets no answer, and no DISCONNECT
//	clients must subscribe to notifications; replies and notifications are ordinary messages
//	a reply or notification larger than the broker accepts is dropped
//	requests and replies in flight when the store's own connection breaks are lost
//	requests reach every subscriber of the request topic
package emulator
