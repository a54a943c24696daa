package wire_test

import (
	"fmt"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

func ExampleAppendRequest() {
	fmt.Printf("%q\n", wire.AppendRequest(nil, wire.VerbSet, "SETKEY2", "VALUE5", wire.OptionNX))
	// Output: "*4\r\n$3\r\nSET\r\n$7\r\nSETKEY2\r\n$6\r\nVALUE5\r\n$2\r\nNX\r\n"
}

func ExampleParseReply() {
	for _, answer := range []string{"$4\r\n1234\r\n", "$-1\r\n", "-1\r\n", "-ERR missing timestamp\r\n"} {
		reply, err := wire.ParseReply([]byte(answer))
		if err != nil {
			fmt.Println(err)
			continue
		}
		if err := reply.StoreError(); err != nil {
			fmt.Println(err.Kind(), "-", err)
			continue
		}
		switch v := reply.Value; v.Kind {
		case wire.Blob:
			fmt.Printf("value %s\n", v.Text)
		case wire.Null:
			fmt.Println("no such key")
		case wire.Integer:
			fmt.Println("count", v.Int, "-", reply.Note)
		}
	}
	// Output:
	// value 1234
	// no such key
	// count -1 - -1 without a colon
	// timestamp_missing - the store answered: missing timestamp
}

func ExampleParseVersion() {
	v, err := wire.ParseVersion("1696374425000:1:StateStore")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v, v.Counter, v.Node, v.Time().Format(time.RFC3339))

	_, err = wire.ParseVersion("1696374425000")
	fmt.Println(err)
	// Output:
	// 1696374425000:1:StateStore 1 StateStore 2023-10-03T23:07:05Z
	// bad HLC "1696374425000": expected WALLMS:COUNTER:NODE, as in 1696374425000:0:node-1
}

func ExampleVersion_Compare() {
	older, _ := wire.ParseVersion("1696374425000:9:StateStore")
	newer, _ := wire.ParseVersion("001696374425000:00010:StateStore")
	fmt.Println(older.Compare(newer), newer.Compare(older), older.Equal(older))
	// Output: -1 1 true
}

func ExampleNotifyTopic() {
	fmt.Println(wire.NotifyTopic("client-id1", "SOMEKEY"))
	// Output: clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/636C69656E742D696431/command/notify/534F4D454B4559
}

func ExampleParseNotifyTopic() {
	fmt.Println(wire.ParseNotifyTopic("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/636C69656E742D696431/command/notify/534F4D454B4559"))
	fmt.Println(wire.ParseNotifyTopic("some/other/topic"))
	// Output:
	// client-id1 SOMEKEY true
	//   false
}

func ExampleClock() {
	now := time.UnixMilli(1696374425000)
	clock := wire.NewClock("client1", func() time.Time { return now })

	first, _ := clock.Tick()
	second, _ := clock.Tick()
	fmt.Println(first)
	fmt.Println(second)

	// The store's clock is two seconds ahead of ours.
	seen, _ := wire.ParseVersion("1696374427000:3:StateStore")
	fmt.Println(clock.Observe(seen))
	third, _ := clock.Tick()
	fmt.Println(third)

	seen, _ = wire.ParseVersion("1696374500000:0:StateStore")
	fmt.Println(clock.Observe(seen))
	// Output:
	// 001696374425000:00000:client1
	// 001696374425000:00001:client1
	// <nil>
	// 001696374427000:00005:client1
	// the HLC is too far ahead of the wall clock: 75000 ms, at most 60000
}
