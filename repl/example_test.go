package repl_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sscli/sscli/repl"
)

func ExampleSplit() {
	words, err := repl.Split(`set setpoint "21.5\n" # degrees`)
	fmt.Println(len(words), err)
	for _, word := range words {
		fmt.Printf("%q %v\n", word.Text, word.Quoted)
	}
	_, err = repl.Split(`set setpoint "21.5`)
	fmt.Println(err, errors.Is(err, repl.ErrIncomplete))
	// Output:
	// 3 <nil>
	// "set" false
	// "setpoint" false
	// "21.5\n" true
	// byte 13: the quote is not closed true
}

func ExampleReader() {
	r := repl.NewReader(strings.NewReader("# what to set\nset a 'two words'\nset b \"\\q\"\nget a\n"))
	for {
		line, err := r.Next()
		if err == io.EOF {
			return
		}
		if _, ok := errors.AsType[*repl.LineError](err); ok {
			fmt.Println(err)
			continue
		}
		if err != nil {
			fmt.Println("read:", err)
			return
		}
		fmt.Printf("line %d: %d words, the last %q\n", line.Number, len(line.Words), line.Words[len(line.Words)-1].Text)
	}
	// Output:
	// line 2: 3 words, the last "two words"
	// line 3: byte 7: expected one of \n \r \t \\ \" \xHH, got \q
	// line 4: 2 words, the last "a"
}
