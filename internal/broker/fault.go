package broker

import "time"

// CutAfter closes the connection as [Client.Cut] does, once n more bytes, at least 1, than are queued now
// were sent to the client.
func (c *Client) CutAfter(n int) { c.cutAfter = c.queued + max(1, n) }

// StallReads makes the broker read nothing more from the client for d, on the broker's clock, or until the connection
// ends. It may only be called by [Options].Handle, for the client whose message is handled.
func (c *Client) StallReads(d time.Duration) {
	if c.resume == nil {
		c.stalled = make(chan struct{})
		c.resume = c.b.At(c.b.Now().Add(d), c.resumeReads)
	}
}

// resumeReads ends StallReads.
func (c *Client) resumeReads() {
	if c.resume != nil {
		c.b.Cancel(c.resume)
		c.resume, c.lastRead = nil, time.Now() // for Keep Alive, the broker was not waiting
		close(c.stalled)
	}
}
