package systext

import (
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// Unix replaces Windows error texts, which depend on the version and the language of Windows, with
// Unix error texts. It also replaces the names of system calls.
func Unix(text string) string {
	var pairs []string
	for code, unix := range map[syscall.Errno]string{
		windows.ERROR_FILE_NOT_FOUND:    "no such file or directory",
		windows.ERROR_PATH_NOT_FOUND:    "no such file or directory",
		windows.ERROR_DIRECTORY:         "not a directory",
		windows.ERROR_INVALID_FUNCTION:  "is a directory", // error of a read
		windows.ERROR_ACCESS_DENIED:     "permission denied",
		windows.ERROR_ALREADY_EXISTS:    "file exists",
		windows.ERROR_FILE_EXISTS:       "file exists",
		windows.WSAECONNREFUSED:         "connection refused",
		windows.WSAECONNRESET:           "connection reset by peer",
		windows.WSAEADDRINUSE:           "address already in use",
		windows.ERROR_INVALID_PARAMETER: "invalid argument",
	} {
		pairs = append(pairs, code.Error(), unix)
	}
	pairs = append(pairs, "connectex:", "connect:", "wsarecv:", "read:", "wsasend:", "write:",
		"GetFileAttributesEx ", "stat ", "%PATH%", "$PATH")
	return strings.NewReplacer(pairs...).Replace(text)
}
