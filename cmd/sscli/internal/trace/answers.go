package trace

import (
	"sync"

	"github.com/sscli/sscli/internal/mqtt"
)

// Answers counts the replies to each request on a connection. The zero value is ready for use. Its
// methods may be called concurrently.
type Answers struct {
	mu   sync.Mutex
	n    map[string]int // number of replies, by correlation data
	most int            // the largest number in n
}

// Add remembers a request, or counts a reply to a remembered request. It ignores other packets and
// duplicates.
func (a *Answers) Add(e mqtt.Event) {
	if e.Message == nil || e.Duplicate || e.Message.Correlation == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(e.Message.Correlation)
	n, asked := a.n[id]
	switch {
	case e.Sent && a.n == nil:
		a.n = map[string]int{id: 0}
	case e.Sent:
		a.n[id] = n
	case asked:
		a.n[id] = n + 1
		a.most = max(a.most, n+1)
	}
}

// Most returns the largest number of replies to one request. If it is more than 1, several stores
// answer on the broker.
func (a *Answers) Most() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}
