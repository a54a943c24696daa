package wire

// Names of MQTT 5 user properties (protocol.md 1.5, 1.6). They are case-sensitive.
const (
	PropTimestamp     = "__ts"            // HLC: the sender's reading in a request, the key's version in a reply
	PropFence         = "__ft"            // fencing token, on SET, DEL and VDEL
	PropSource        = "__srcId"         // client id of the sender
	PropProtocol      = "__protVer"       // version of the SDKs' RPC protocol
	PropPartition     = "$partition"      // client id; the broker may use it to choose a partition
	PropHighPriority  = "$high_priority"  // if present, the broker accepts the request even under load
	PropPersist       = "aio-persistence" // "true" on SET: keep the entry on disk
	PropStatus        = "__stat"          // HTTP status code in decimal, in replies
	PropStatusMessage = "__stMsg"         // text of an error status

	PropMetricCategory = "metriccategory" // on CONNECT: the group of this client in the broker's metrics
)

// Values for PropProtocol, for PropStatus, and for the Content Type of a message.
const (
	ProtocolVersion = "1.0"
	StatusOK        = "200"
	ContentType     = "application/octet-stream"
)
