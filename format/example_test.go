package format_test

import (
	"fmt"
	"os"
	"time"

	"github.com/sscli/sscli/format"
)

func ExamplePrinter() {
	for _, output := range []string{"human", "raw", "json", "template={{.key}} is {{.value}}"} {
		p, err := format.New(os.Stdout, format.Options{Output: output})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = p.Print(format.Get{
			Key: "setpoint", Found: true, Value: []byte("21.5"), RTT: 1840 * time.Microsecond, Many: true,
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// setpoint  version unknown                         21.5
	// setpoint	?	21.5
	// {"op":"get","key":"setpoint","found":true,"value":"21.5","rtt_ms":1.84}
	// setpoint is 21.5
}

func ExampleNew() {
	_, err := format.New(os.Stdout, format.Options{Output: "xml"})
	fmt.Println(err)
	// Output: output "xml": must be human, wide, raw, json or template=TEMPLATE
}

func ExampleFault() {
	p, err := format.New(os.Stdout, format.Options{Output: "human"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = p.Print(format.Fault{Code: 2, Kind: "usage", Line: 7, Message: `unknown command "gett"`, Hint: format.Hint{{Text: "sscli help get", Command: true}}})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// sscli: line 7: unknown command "gett"
	//   try: sscli help get
}

func ExampleEscape() {
	escaped := format.Escape("21.5\t°C\n\x1b")
	fmt.Println(escaped)
	back, err := format.Unescape(escaped)
	fmt.Printf("%q %v\n", back, err)
	// Output:
	// 21.5\t°C\n\x1b
	// "21.5\t°C\n\x1b" <nil>
}

func ExampleUnquote() {
	_, err := format.Unquote(`"a\qb"`)
	fmt.Println(err)
	// Output: byte 2: expected one of \n \r \t \\ \" \xHH, got \q
}

func ExampleWord() {
	fmt.Println("set", format.Word("setpoint"), format.Word("two words"))
	// Output: set setpoint "two words"
}
