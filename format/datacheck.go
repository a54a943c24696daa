package format

// DataCheck is what `serve --data-check` found in a data file.
type DataCheck struct {
	File     string   `json:"file"`
	Keys     int      `json:"keys"`  // the number of readable keys
	Bytes    int64    `json:"bytes"` // of the readable keys and their values
	Size     int64    `json:"size"`  // of the data file, in bytes
	Damages  []string `json:"damages"`
	More     int      `json:"more_damages"`      // number of damages that Damages omits
	Salvaged string   `json:"salvaged,omitzero"` // the file that received the readable keys; empty = none
}

func (c DataCheck) fields(o *objectWriter) { o.result("data_check", c) }

func (c DataCheck) human(w *writer) {
	w.printf("%s: %s, %s in a file of %s", printable(c.File), Count(c.Keys, "key"), Count(int(c.Bytes), "byte"), Count(int(c.Size), "byte"))
	if len(c.Damages) == 0 {
		w.print(", no damage")
	}
	w.print("\n")
	for _, d := range c.Damages {
		w.print("  damage: ", printable(d), "\n")
	}
	if c.More > 0 {
		w.printf("  and %d more\n", c.More)
	}
	if c.Salvaged != "" {
		w.print("written to ", printable(c.Salvaged), "\n")
	}
}

func (c DataCheck) raw(w *writer) { w.record(c.Keys, c.Bytes, c.Size, len(c.Damages)+c.More) }
