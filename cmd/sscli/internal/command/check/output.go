package check

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/format"
)

// maxLine is the length of a plugin's line, in bytes, and maxText that of its text before the numbers. Nagios reads no
// more than 4 KB.
const (
	maxLine = 4000
	maxText = 3000
)

// plugin returns verdicts as the line of a monitoring plugin, and its state. The worst come
// first, as many as fit, and then the numbers as performance data, as many as fit. forgot is why the file of --state was
// not read or not written, or nil.
func plugin(verdicts []verdict, now time.Time, forgot error) (line string, worst state) {
	var bad []*verdict
	for i := range verdicts {
		v := &verdicts[i]
		if worst = worse(worst, v.state); v.state != ok {
			bad = append(bad, v)
		}
	}
	slices.SortStableFunc(bad, func(a, b *verdict) int { return b.state.order() - a.state.order() })
	text := ""
	switch {
	case len(verdicts) == 1:
		text = verdicts[0].spec.describe() + ": " + verdicts[0].message(now)
	case len(bad) == 0:
		text = format.Count(len(verdicts), "check")
	default:
		text = fmt.Sprintf("%d of %s: ", len(bad), format.Count(len(verdicts), "check"))
		for i, v := range bad {
			next := v.state.String() + " " + v.spec.describe() + ": " + v.message(now)
			if i > 0 && len(text)+len(plain(next)) > maxText-len(", and 10000 more") {
				text += fmt.Sprintf(", and %d more", len(bad)-i)
				break
			}
			if i > 0 {
				text += ", "
			}
			text += next
		}
	}
	if text = plain(text); len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	if forgot != nil {
		worst = worse(worst, unknown)
		text += "; " + plain(forgot.Error())
	}
	line = "SSCLI " + worst.String() + " - " + text
	separator := " | "
	for i := range verdicts {
		for _, m := range verdicts[i].measures {
			if data := separator + m.plugin(verdicts[i].spec); len(line)+len(data) <= maxLine {
				line, separator = line+data, " "
			}
		}
	}
	return line, worst
}

// plain returns text that cannot end the text of a plugin: without control characters and |.
func plain(text string) string {
	return strings.ReplaceAll(format.Escape(text), "|", "/")
}

// plugin returns a number as performance data: 'label'=value[unit];[warning];[critical]. Two checks never have the
// same label, because what is escaped can be told from what is not.
func (m measure) plugin(s *spec) string {
	label := strings.NewReplacer("'", "''", "=", `\x3d`, "|", `\x7c`).Replace(format.Escape(s.describe() + " " + m.name))
	text := "'" + label + "'=" + m.decimal(m.value) + m.unit
	if m.lower != nil || m.higher != nil {
		text += ";" + m.bounds(func(l *limit) (number, bool) { return l.warning, l.warns }) + ";" + m.bounds(func(l *limit) (number, bool) { return l.critical, true })
	}
	return text
}

// bounds returns one of the two values of each limit as a range of numbers that are fine: "20" (from 0), "~:20",
// "10:" or "10:20".
func (m measure) bounds(of func(*limit) (n number, set bool)) (text string) {
	if m.lower != nil {
		if n, set := of(m.lower); set {
			text = m.decimal(n) + ":"
		}
	}
	if m.higher != nil {
		if n, set := of(m.higher); set {
			if text == "" && m.exact {
				text = "~:"
			}
			text += m.decimal(n)
		}
	}
	return text
}

// decimal returns the measure's number, or a limit of it, as performance data writes it. The number that a value has
// is not rounded.
func (m measure) decimal(n number) string {
	if m.exact {
		return n.text('f')
	}
	return decimal(n.float)
}

func (m measure) fact() format.Fact {
	name := m.name + map[string]string{seconds: "_seconds", size: "_bytes"}[m.unit]
	return format.Fact{Name: name, Number: json.RawMessage(m.decimal(m.value))}
}

// decimal returns a number as performance data writes it: in thousandths, and in millionths below 1.
func decimal(n float64) string {
	parts := 1e3
	switch {
	case math.Abs(n) < 1:
		parts = 1e6
	case math.Abs(n) > 1<<53: // a whole number
		parts = 1
	}
	return strconv.FormatFloat(math.Round(n*parts)/parts, 'f', -1, 64)
}

// A family is a metric with its series.
type family struct{ name, kind, help string }

// families returns the metrics, in the order in which they are written. docs/monitoring.md has a table of them.
func families() []family {
	all := []family{
		{"sscli_build_info", "gauge", "The version of sscli; always 1."},
		{"sscli_up", "gauge", "Whether the store answered the last round trip."},
		{"sscli_round_trip_seconds", "gauge", "Duration of the last round trip to the store."},
		{"sscli_clock_skew_seconds", "gauge", "How far this machine's clock is ahead of the store's."},
		{"sscli_certificate_expiry_timestamp_seconds", "gauge", "When the certificate that expires first does: of the verified chain with its CA, or the client's own."},
		{"sscli_token_expiry_timestamp_seconds", "gauge", "When the service-account token expires."},
		{"sscli_watch_gaps_total", "counter", "Breaks of the watch in which changes may have been missed."},
		{"sscli_check_state", "gauge", "State of a check: 0 OK, 1 warning, 2 critical, 3 unknown."},
	}
	for _, k := range kinds() {
		if k.families != nil {
			all = append(all, k.families()...)
		}
	}
	return all
}

// An exposition collects series in the text format of Prometheus.
type exposition struct {
	series map[string]*strings.Builder // by metric
	escape *strings.Replacer           // of the values of labels
}

func newExposition() *exposition {
	return &exposition{make(map[string]*strings.Builder), strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)}
}

func (e *exposition) add(name string, value float64, labels ...label) {
	e.write(name, strconv.FormatFloat(value, 'g', -1, 64), labels...)
}

// write adds a series whose value is a text.
func (e *exposition) write(name, value string, labels ...label) {
	b := e.series[name]
	if b == nil {
		b = &strings.Builder{}
		e.series[name] = b
	}
	b.WriteString(name)
	for i, l := range labels {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(l.name + `="`)
		b.WriteString(e.escape.Replace(strings.ToValidUTF8(l.value, "\ufffd")))
		b.WriteByte('"')
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + value + "\n")
}

// String returns the series below their HELP and TYPE.
func (e *exposition) String() string {
	var b strings.Builder
	for _, f := range families() {
		if series := e.series[f.name]; series != nil {
			b.WriteString("# HELP " + f.name + " " + f.help + "\n# TYPE " + f.name + " " + f.kind + "\n" + series.String())
		}
	}
	return b.String()
}

// expose adds the series of a broker and of its checks. watched is set if changes were watched.
func (v *view) expose(e *exposition, watched bool, local time.Time) {
	verdicts := v.verdicts(local)
	v.mu.Lock()
	defer v.mu.Unlock()
	b := &v.broker
	own := append([]label{{"context", v.context}}, v.labels...)
	e.add("sscli_up", truth(b.err == nil), own...)
	if b.err == nil {
		e.add("sscli_round_trip_seconds", b.rtt.Seconds(), own...)
		if b.clock != nil && b.clock.exact {
			ahead := b.skew(local)
			e.add("sscli_clock_skew_seconds", (ahead.least + (ahead.most-ahead.least)/2).Seconds(), own...)
		}
	}
	if b.cert != nil && b.verified {
		e.add("sscli_certificate_expiry_timestamp_seconds", float64(b.cert.NotAfter.Unix()), slices.Concat(own, []label{{"certificate", b.cert.Subject.String()}})...)
	}
	if !b.token.IsZero() {
		e.add("sscli_token_expiry_timestamp_seconds", float64(b.token.Unix()), own...)
	}
	if watched {
		e.add("sscli_watch_gaps_total", float64(b.gaps), own...)
	}
	for i := range verdicts {
		s := verdicts[i].spec
		labels := slices.Concat(own, []label{{"check", s.describe()}})
		e.add("sscli_check_state", float64(verdicts[i].state), slices.Concat(labels, s.labels)...)
		if b.err == nil {
			s.expose(e, v, labels, watched, local)
			for _, one := range verdicts[i].each {
				labels := slices.Concat(labels, []label{{aMatch, s.target}, {aKey, one.spec.target}}, s.labels)
				e.add("sscli_match_key_state", float64(one.state), labels...)
				one.spec.exposeContent(e, b, v.seen[one.spec], labels, local)
			}
		}
	}
}

// expose adds the series of what a check looks at, if it is known.
func (s *spec) expose(e *exposition, from *view, labels []label, watched bool, local time.Time) {
	kind := kindOf(s.kind)
	if k := from.seen[s]; kind.expose == nil || kind.look != nil && (!k.read || k.err != nil) {
		return
	}
	kind.expose(s, e, from, slices.Concat(labels, []label{{s.kind, s.target}}, s.labels), watched, local)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
