package terminal

import (
	"io"
	"sync"
	"time"
)

// A Line is a line at the bottom of standard error that is redrawn, such as a progress bar. All other
// output to standard error must go through Write, which prints it above the line. The methods may be
// called concurrently.
type Line struct {
	mu    sync.Mutex
	W     io.Writer
	drawn bool
}

const clearLine = "\r\x1b[K"

func (l *Line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		l.drawn = false
		if _, err := io.WriteString(l.W, clearLine); err != nil {
			return 0, err
		}
	}
	return l.W.Write(b)
}

// draw redraws the line. It ignores errors, because without the terminal nobody sees the line.
func (l *Line) draw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = true
	_, _ = io.WriteString(l.W, clearLine+text)
}

// Animate calls text at each interval and draws the line that text returns. end stops the drawing and
// clears the line.
func (l *Line) Animate(interval time.Duration, text func() string) (end func()) {
	stop := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.draw(text())
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		drawing.Wait()
		_, _ = l.Write(nil) // clears the line
	}
}
