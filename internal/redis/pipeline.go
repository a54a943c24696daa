package redis

import (
	"sync/atomic"
)

// A pipeline holds the running commands of one client. It is used with a remote store only. Commands on
// different keys run at the same time; commands on the same key run one after the other. Replies are sent
// in the order of the commands, each as early as this order allows. Only the goroutine that reads the
// client's requests may use a pipeline.
type pipeline struct {
	tasks       []*task          // oldest first
	latest      map[string]*task // the latest task for each key
	keys, bytes int              // total numbers of keys and bytes of the tasks
	memory      int              // total cost of the tasks, in bytes
}

// A task is a command of a pipeline.
type task struct {
	args  [][]byte
	keys  []string
	bytes int           // size of the arguments
	done  chan struct{} // closed when the command has run
	sent  chan struct{} // closed when the reply and all earlier replies are in the output
}

func newTask(cmd *command, args [][]byte) *task {
	size := sizeOf(args)
	t := &task{args: cloneArgs(args, size), bytes: size, done: make(chan struct{}), sent: make(chan struct{})}
	for key := range cmd.keysOf(args) {
		t.keys = append(t.keys, string(key))
	}
	return t
}

// cost returns the estimated memory of a running command, in bytes.
func (t *task) cost() int { return taskCost + t.bytes + argCost*len(t.args) + taskKeyCost*len(t.keys) }

// A window limits how many keys of one client are requested from a remote store at the same time. It
// shrinks after a large value and grows after small ones, because all values stay in memory until
// the client has read them.
type window struct{ n atomic.Int64 }

const (
	firstWindow = 4
	maxWindow   = 256
)

func newWindow() *window {
	w := &window{}
	w.n.Store(firstWindow)
	return w
}

// adapt adjusts the window after the store has returned a value of size bytes.
func (w *window) adapt(size int) {
	n, most := w.n.Load(), int64(fullOutput/max(size, 1))
	w.n.Store(max(1, min(n+1, maxWindow, most)))
}

// runInPipeline starts a request in the pipeline and returns true. If the request must not run together
// with other requests, for example because it has no keys, runInPipeline instead waits until the running
// commands have ended, and returns false.
func (c *conn) runInPipeline(args [][]byte) bool {
	cmd, unknownSub := c.s.table.lookup(args)
	size := sizeOf(args)
	if cmd == nil || cmd.flags&usesStore == 0 || cmd.keys.first == 0 || size > fullOutput ||
		c.replyOff || c.skip > 0 || c.refusal(cmd, unknownSub, args) != nil {
		c.awaitPipeline()
		return false
	}
	c.lastCommand.Store(cmd)
	t := newTask(cmd, args)
	p := &c.pipeline
	for len(p.tasks) > 0 && (p.keys+len(t.keys) > int(c.window.n.Load()) || p.bytes+size > fullOutput || isClosed(p.tasks[0].sent)) {
		p.awaitFirst()
	}
	for !c.chargeInput(len(c.in.buf) + t.cost()) {
		if len(p.tasks) == 0 {
			c.mark, c.last = len(c.w), true
			c.refuseCommand(cmd, args, errMemory)
			return true
		}
		p.awaitFirst()
	}
	earlier, turn := p.add(t)
	c.commit()
	worker := &conn{s: c.s, nc: c.nc, socket: c.socket, id: c.id, who: c.who, out: c.out, window: c.window, resp3: c.resp3, turn: turn}
	c.s.running.Go(func() {
		for _, e := range earlier {
			<-e.done
		}
		if !c.out.closed.Load() {
			worker.execute(cmd, t.args)
		}
		close(t.done)
		worker.awaitTurn()
		worker.flush()
		if worker.last {
			worker.close()
		}
		close(t.sent)
	})
	c.s.commands.Add(1)
	return true
}

// add adds a task. It returns the earlier tasks that use one of the task's keys, and a channel that is
// closed when the task may reply. If the channel is nil, the task may reply immediately.
func (p *pipeline) add(t *task) (earlier []*task, turn chan struct{}) {
	if n := len(p.tasks); n > 0 {
		turn = p.tasks[n-1].sent
	}
	if p.latest == nil {
		p.latest = make(map[string]*task)
	}
	for _, key := range t.keys {
		if e := p.latest[key]; e != nil && e != t {
			earlier = append(earlier, e)
		}
		p.latest[key] = t
	}
	p.tasks = append(p.tasks, t)
	p.keys += len(t.keys)
	p.bytes += t.bytes
	p.memory += t.cost()
	return earlier, turn
}

// awaitFirst waits until the reply to the oldest task is in the output, and removes the task.
func (p *pipeline) awaitFirst() {
	t := p.tasks[0]
	<-t.sent
	p.tasks = p.tasks[1:]
	p.keys -= len(t.keys)
	p.bytes -= t.bytes
	p.memory -= t.cost()
	for _, key := range t.keys {
		if p.latest[key] == t {
			delete(p.latest, key)
		}
	}
}

// awaitPipeline waits until the replies of all running commands are in the output.
func (c *conn) awaitPipeline() {
	for len(c.pipeline.tasks) > 0 {
		c.pipeline.awaitFirst()
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func sizeOf(args [][]byte) (size int) {
	for _, a := range args {
		size += len(a)
	}
	return size
}

// cloneArgs copies arguments, of size bytes in total, because their buffer is reused.
func cloneArgs(args [][]byte, size int) [][]byte {
	joined, copied := make([]byte, 0, size), make([][]byte, len(args))
	for i, a := range args {
		joined = joined[:len(joined)+copy(joined[len(joined):cap(joined)], a)]
		copied[i] = joined[len(joined)-len(a) : len(joined) : len(joined)]
	}
	return copied
}
