package format

import "strconv"

// DataCheck is what `serve --data-check` found in a data file.
type DataCheck struct {
	File     string
	Keys     int   // that are readable
	Bytes    int64 // of these keys and their values
	Size     int64 // of the file, in bytes
	Damages  []string
	More     int    // damages that are not in Damages
	Salvaged string // the file to which the keys were written; "": none
}

func (c DataCheck) fields() object {
	damages := make(list, len(c.Damages))
	for i, d := range c.Damages {
		damages[i] = d
	}
	return object{
		{"op", "data_check"}, {"file", c.File}, {"keys", c.Keys}, {"bytes", c.Bytes}, {"size", c.Size},
		{"damages", damages}, {"more_damages", c.More}, {"salvaged", nonEmpty(c.Salvaged)},
	}
}

func (c DataCheck) human(dst []byte, _ *style) []byte {
	dst = append(appendText(dst, c.File), ": "...)
	dst = append(strconv.AppendInt(dst, int64(c.Keys), 10), " keys, "...)
	dst = append(strconv.AppendInt(dst, c.Bytes, 10), " bytes in a file of "...)
	dst = append(strconv.AppendInt(dst, c.Size, 10), " bytes"...)
	if len(c.Damages) == 0 {
		dst = append(dst, ", no damage"...)
	}
	dst = append(dst, '\n')
	for _, d := range c.Damages {
		dst = append(appendText(append(dst, "  damage: "...), d), '\n')
	}
	if c.More > 0 {
		dst = append(strconv.AppendInt(append(dst, "  and "...), int64(c.More), 10), " more\n"...)
	}
	if c.Salvaged != "" {
		dst = append(appendText(append(dst, "written to "...), c.Salvaged), '\n')
	}
	return dst
}

func (c DataCheck) raw(dst []byte) []byte {
	for _, n := range []int64{int64(c.Keys), c.Bytes, c.Size} {
		dst = append(strconv.AppendInt(dst, n, 10), '\t')
	}
	return append(strconv.AppendInt(dst, int64(len(c.Damages)+c.More), 10), '\n')
}
