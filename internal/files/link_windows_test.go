package files

import "testing"

func TestBeside(t *testing.T) {
	for _, c := range []struct{ file, name, want string }{
		{`C:\dir\config.yaml`, `ca.crt`, `C:\dir\ca.crt`},
		{`C:\dir\config.yaml`, `..\ca.crt`, `C:\ca.crt`},
		{`C:\dir\config.yaml`, `D:\ca.crt`, `D:\ca.crt`},
		{`C:\dir\config.yaml`, `D:ca.crt`, `D:ca.crt`},
		{`C:\dir\config.yaml`, `\run\ca.crt`, `C:\run\ca.crt`},
		{`C:\dir\config.yaml`, `/run/ca.crt`, `C:/run/ca.crt`},
		{`C:\dir\config.yaml`, `\\server\share\ca.crt`, `\\server\share\ca.crt`},
		{`\\server\share\dir\config.yaml`, `ca.crt`, `\\server\share\dir\ca.crt`},
		{`\\server\share\dir\config.yaml`, `\ca.crt`, `\\server\share\ca.crt`},
		{`config.yaml`, `\run\ca.crt`, `\run\ca.crt`},
	} {
		if got := Beside(c.file, c.name); got != c.want {
			t.Errorf("Beside(%s, %s) = %s, want %s", c.file, c.name, got, c.want)
		}
	}
}
