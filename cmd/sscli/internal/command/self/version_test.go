package self

import (
	"runtime/debug"
	"testing"

	"github.com/sscli/sscli/format"
)

func TestRecorded(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	checkout := []debug.BuildSetting{setting("vcs", "git"), setting("vcs.revision", "0123abc"), setting("vcs.time", "2026-01-02T03:04:05Z")}
	for _, test := range []struct {
		settings []debug.BuildSetting
		want     format.Build
	}{
		{nil, format.Build{Version: "(devel)"}},
		{append(checkout, setting("vcs.modified", "false")), format.Build{Version: "(devel)", Commit: "0123abc", Date: "2026-01-02T03:04:05Z"}},
		{append(checkout, setting("vcs.modified", "true")), format.Build{Version: "(devel)", Commit: "0123abc", Modified: true, Date: "2026-01-02T03:04:05Z"}},
	} {
		info := debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: test.settings}
		if got := recorded(format.Build{}, &info); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.settings, got, test.want)
		}
	}
}
