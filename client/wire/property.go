package wire

// Names of MQTT 5 user properties (protocol.md 1.5, 1.6). They are case-sensitive.
const (
	PropTimestamp     = "__ts"            // HLC: of the sender in a request, the key's version in a reply
	PropFence         = "__ft"            // fencing token, on SET, DEL and VDEL
	PropSource        = "__srcId"         // client id of the sender
	PropProtocol      = "__protVer"       // version of the SDKs' RPC protocol
	PropPartition     = "$partition"      // client id: hint for the broker's partitions
	PropHighPriority  = "$high_priority"  // present: the broker accepts the request also under load
	PropPersist       = "aio-persistence" // "true" on SET: keep the entry on disk
	PropStatus        = "__stat"          // decimal, an HTTP status, in replies
	PropStatusMessage = "__stMsg"         // text of an error status

	PropMetricCategory = "metriccategory" // on CONNECT: how the broker's metrics group clients
)

// Values of these properties.
const (
	ProtocolVersion = "1.0"
	StatusOK        = "200"
	ContentType     = "application/octet-stream"
)
