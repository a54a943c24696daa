package format

import "fmt"

// DataCheck is what `serve --data-check` found in a data file.
type DataCheck struct {
	File     string   `json:"file"`
	Keys     int      `json:"keys"`  // the number of readable keys
	Bytes    int64    `json:"bytes"` // of the readable keys and their values
	Size     int64    `json:"size"`  // of the data file, in bytes
	Damages  []string `json:"damages"`
	More     int      `json:"more_damages"`      // number of damages that Damages omits
	Salvaged string   `json:"salvaged,omitzero"` // the file that received the readable keys; empty: none
}

func (c DataCheck) fields(o *objectWriter) { o.result("data_check", c) }

func (c DataCheck) human(dst []byte, _ *style) []byte {
	dst = fmt.Appendf(appendText(dst, c.File), ": %d keys, %d bytes in a file of %d bytes", c.Keys, c.Bytes, c.Size)
	if len(c.Damages) == 0 {
		dst = append(dst, ", no damage"...)
	}
	dst = append(dst, '\n')
	for _, d := range c.Damages {
		dst = append(appendText(append(dst, "  damage: "...), d), '\n')
	}
	if c.More > 0 {
		dst = fmt.Appendf(dst, "  and %d more\n", c.More)
	}
	if c.Salvaged != "" {
		dst = append(appendText(append(dst, "written to "...), c.Salvaged), '\n')
	}
	return dst
}

func (c DataCheck) raw(dst []byte) []byte {
	return appendRecord(dst, c.Keys, c.Bytes, c.Size, len(c.Damages)+c.More)
}
