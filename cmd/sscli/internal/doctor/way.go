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

// A way is what is seen of a connection while it comes about and is used.
type way struct {
	mu        sync.Mutex
	addresses []string // what the host's name stands for
	peer      string   // the address that was connected to
	tls       *tls.ConnectionState
	began     map[mqtt.Stage]time.Time
	took      map[mqtt.Stage]time.Duration
	said      map[string]string // in words, by packet
	reply     mqtt.Message      // the last
	notice    mqtt.Message      // the last notification
}

// observe lets the way see the connection that is made with ctx and the options.
func (w *way) observe(ctx context.Context, o *client.Options) context.Context {
	w.began, w.took = make(map[mqtt.Stage]time.Time), make(map[mqtt.Stage]time.Duration)
	w.said = make(map[string]string)
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.VerifyConnection = func(state tls.ConnectionState) error {
			w.end(mqtt.StageTLS)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tls = &state
			return nil
		}
	}
	before := o.Trace
	o.Trace = func(e mqtt.Event) {
		w.packet(e)
		if before != nil {
			before(e)
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { w.begin(mqtt.StageLookup) },
		DNSDone: func(d httptrace.DNSDoneInfo) {
			w.end(mqtt.StageLookup)
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, a := range d.Addrs {
				w.addresses = append(w.addresses, a.String())
			}
		},
		ConnectStart: func(string, string) { w.begin(mqtt.StageTCP) },
		ConnectDone: func(_, address string, err error) {
			if err != nil {
				return
			}
			w.end(mqtt.StageTCP)
			w.begin(mqtt.StageTLS)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.peer = address
		},
	})
}

func (w *way) begin(stage mqtt.Stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.began[stage]; !again {
		w.began[stage] = time.Now()
	}
}

func (w *way) end(stage mqtt.Stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if began, ok := w.began[stage]; ok {
		w.took[stage] = time.Since(began)
	}
}

func (w *way) packet(e mqtt.Event) {
	switch e.Type {
	case "CONNECT":
		w.begin(mqtt.StageConnect)
		w.begin(mqtt.StageSubscribe)
	case "CONNACK":
		w.end(mqtt.StageConnect)
	case "SUBACK":
		w.end(mqtt.StageSubscribe)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Type != "PUBLISH":
		if _, again := w.said[e.Type]; !again {
			w.said[e.Type] = e.Detail
		}
	case e.Sent:
	default:
		if _, _, notice := wire.ParseNotifyTopic(e.Message.Topic); notice {
			w.notice = *e.Message
		} else {
			w.reply = *e.Message
		}
	}
}

// lastReply is the message that the last answer came in.
func (w *way) lastReply() mqtt.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reply
}

// lastNotice is the last notification.
func (w *way) lastNotice() mqtt.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notice
}
