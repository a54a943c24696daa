package emulator

import (
	"os"

	"github.com/sscli/sscli/internal/policy"
)

// OpenedBy sets the function that opens the data file.
func (d Data) OpenedBy(open func(name string, flag int, perm os.FileMode) (*os.File, error)) Data {
	d.disk.OpenFile = open
	return d
}

// Around sets a function that runs around each commit.
func (d Data) Around(commit func(write func() error) error) Data {
	d.commit = commit
	return d
}

// Waiting returns the number of goroutines that wait for the server's lock.
func (s *Server) Waiting() int { return s.broker.Waiting() }

// JournalFull reports whether clients wait for the data file.
func (s *Server) JournalFull() bool {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.journal.full()
}

// OwnsTopic gives tests access to policy.OwnsTopic.
var OwnsTopic = policy.OwnsTopic

// Kept returns the memory that is charged to clients, in bytes.
func (s *Server) Kept() int {
	s.broker.Lock()
	defer s.broker.Unlock()
	return s.broker.Stats().Kept
}
