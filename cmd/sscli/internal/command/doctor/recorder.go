package doctor

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A recorder records what is seen of a connection while it is made and used. It may be used by
// several goroutines.
type recorder struct {
	mu        sync.Mutex
	addresses []string // of the host name; empty if there was no lookup
	peer      string   // the address of the connection
	tls       *tls.ConnectionState
	began     map[mqtt.Stage]time.Time
	took      map[mqtt.Stage]time.Duration
	said      map[string]string // the first packet of each type, in words
	reply     mqtt.Message      // the last reply
	notice    mqtt.Message      // the last notification
}

// observe makes the recorder see the connection that is made with the returned context and o,
// which it changes.
func (r *recorder) observe(ctx context.Context, o *client.Options) context.Context {
	r.began, r.took = make(map[mqtt.Stage]time.Time), make(map[mqtt.Stage]time.Duration)
	r.said = make(map[string]string)
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.VerifyConnection = func(state tls.ConnectionState) error {
			r.end(mqtt.StageTLS)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.tls = &state
			return nil
		}
	}
	before := o.Trace
	o.Trace = func(e mqtt.Event) {
		r.packet(e)
		if before != nil {
			before(e)
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { r.begin(mqtt.StageLookup) },
		DNSDone: func(d httptrace.DNSDoneInfo) {
			r.end(mqtt.StageLookup)
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, a := range d.Addrs {
				r.addresses = append(r.addresses, a.String())
			}
		},
		ConnectStart: func(string, string) { r.begin(mqtt.StageTCP) },
		ConnectDone: func(_, address string, err error) {
			if err != nil {
				return
			}
			r.end(mqtt.StageTCP)
			r.begin(mqtt.StageTLS)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.peer = address
		},
	})
}

// begin records the beginning of a stage, the first time.
func (r *recorder) begin(stage mqtt.Stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.began[stage]; !again {
		r.began[stage] = time.Now()
	}
}

// end records the end of a stage.
func (r *recorder) end(stage mqtt.Stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began, ok := r.began[stage]; ok {
		r.took[stage] = time.Since(began)
	}
}

// packet records a packet.
func (r *recorder) packet(e mqtt.Event) {
	switch e.Type {
	case "CONNECT":
		r.begin(mqtt.StageConnect)
		r.begin(mqtt.StageSubscribe)
	case "CONNACK":
		r.end(mqtt.StageConnect)
	case "SUBACK":
		r.end(mqtt.StageSubscribe)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Type != "PUBLISH":
		if _, again := r.said[e.Type]; !again {
			r.said[e.Type] = e.Detail
		}
	case e.Sent:
	default:
		if _, _, notice := wire.ParseNotifyTopic(e.Message.Topic); notice {
			r.notice = *e.Message
		} else {
			r.reply = *e.Message
		}
	}
}

// lastReply returns the message of the last reply.
func (r *recorder) lastReply() mqtt.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reply
}

// lastNotice returns the message of the last notification.
func (r *recorder) lastNotice() mqtt.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notice
}
