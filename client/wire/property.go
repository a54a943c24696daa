package wire

// Names of MQTT 5 user properties (protocol.md 1.5, 1.6). They are case-sensitive.
const (
	PropTimestamp     = "__ts"            // HLC: of the sender in a request, the key's version in a reply
	PropFence         = "__ft"            // fencing token, on SET, DEL and VDEL
	PropSource        = "__srcId"         // client id of the sender
	PropProtocol      = "__protVer"       // version of the SDKs' RPC protocol
	PropPartition     = "$partition"      // client id: hint for the broker's partitions
	PropHighPriority  = "$high_priority"  // present: passes when the broker pushes back
	PropPersist       = "aio-persistence" // "true" on SET: keep the entry on disk
	PropStatus        = "__stat"          // decimal, as of HTTP, in replies
	PropStatusMessage = "__stMsg"         // text for a status that is an error
)

// Values that go with them.
const (
	ProtocolVersion = "1.0"
	StatusOK        = "200"
	ContentType     = "application/octet-stream"
)
