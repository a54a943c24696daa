package main

import (
	"io"
	"sync"
	"time"
)

// A liveLine is a line at the end of standard error that is written again and
// again. What else goes there passes through its Write and stands above it.
type liveLine struct {
	mu    sync.Mutex
	w     io.Writer
	drawn bool
}

const clearLine = "\r\x1b[K"

func (l *liveLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.clear(); err != nil {
		return 0, err
	}
	return l.w.Write(b)
}

func (l *liveLine) clear() error {
	if !l.drawn {
		return nil
	}
	l.drawn = false
	_, err := io.WriteString(l.w, clearLine)
	return err
}

// draw writes the line; if standard error is gone there is nobody to show it to.
func (l *liveLine) draw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = true
	_, _ = io.WriteString(l.w, clearLine+text)
}

// animate draws what text returns, at this interval. What it returns ends that and
// clears the line.
func (l *liveLine) animate(interval time.Duration, text func() string) (end func()) {
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
		_, _ = l.Write(nil) // nobody sees whether it was cleared
	}
}
