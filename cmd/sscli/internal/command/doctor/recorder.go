package doctor

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/trace"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// A recorder records the stages of a connection, and what the connection sends and receives. Several
// goroutines may use it.
type recorder struct {
	mu        sync.Mutex
	addresses []string // addresses of the host name; empty = no lookup
	peer      string   // the remote address of the connection
	tls       *tls.ConnectionState
	began     map[mqtt.Stage]time.Time
	took      map[mqtt.Stage]time.Duration
	first     map[string]string // details of the first packet of each type except PUBLISH
	reply     mqtt.Message      // the last reply
	notice    mqtt.Message      // the last notification
	answers   trace.Answers
}

// record adds hooks to o and to ctx. A connection that is dialed with o and the returned context is
// recorded.
func (r *recorder) record(ctx context.Context, o *client.Options) context.Context {
	r.began, r.took = make(map[mqtt.Stage]time.Time), make(map[mqtt.Stage]time.Duration)
	r.first = make(map[string]string)
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.VerifyConnection = func(state tls.ConnectionState) error {
			r.locked(func() {
				r.end(mqtt.StageTLS)
				r.tls = &state
			})
			return nil
		}
	}
	o.Trace = trace.Tee(o.Trace, r.packet)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { r.locked(func() { r.begin(mqtt.StageLookup) }) },
		DNSDone: func(d httptrace.DNSDoneInfo) {
			r.locked(func() {
				r.end(mqtt.StageLookup)
				for _, a := range d.Addrs {
					r.addresses = append(r.addresses, a.String())
				}
			})
		},
		ConnectStart: func(string, string) { r.locked(func() { r.begin(mqtt.StageTCP) }) },
		ConnectDone: func(_, address string, err error) {
			if err == nil {
				r.locked(func() {
					r.end(mqtt.StageTCP)
					r.begin(mqtt.StageTLS)
					r.peer = address
				})
			}
		},
	})
}

// locked calls f with r.mu locked.
func (r *recorder) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// begin records when a stage first began. r.mu must be held.
func (r *recorder) begin(stage mqtt.Stage) {
	if r.began[stage].IsZero() {
		r.began[stage] = time.Now()
	}
}

// end records how long a stage took. r.mu must be held.
func (r *recorder) end(stage mqtt.Stage) {
	if began, ok := r.began[stage]; ok {
		r.took[stage] = time.Since(began)
	}
}

func (r *recorder) packet(e mqtt.Event) {
	r.answers.Add(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Type {
	case "CONNECT":
		r.begin(mqtt.StageConnect)
		r.begin(mqtt.StageSubscribe) // SUBSCRIBE is sent together with CONNECT
	case "CONNACK":
		r.end(mqtt.StageConnect)
	case "SUBACK":
		r.end(mqtt.StageSubscribe)
	case "PUBLISH":
		if e.Sent {
			return
		}
		if _, _, isNotice := wire.ParseNotifyTopic(e.Message.Topic); isNotice {
			r.notice = *e.Message
		} else {
			r.reply = *e.Message
		}
		return
	}
	if _, again := r.first[e.Type]; !again {
		r.first[e.Type] = e.Detail
	}
}

func (r *recorder) last() (reply, notice mqtt.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reply, r.notice
}
