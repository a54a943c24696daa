package emulator

import (
	"os"

	"github.com/sscli/sscli/internal/policy"
)

// OpenedBy has a test open the data file.
func (d Data) OpenedBy(open func(name string, flag int, perm os.FileMode) (*os.File, error)) Data {
	d.disk.OpenFile = open
	return d
}

// Around has a test do something around each commit.
func (d Data) Around(commit func(write func() error) error) Data {
	d.commit = commit
	return d
}

// OwnsTopic lets a test ask whose a topic is.
var OwnsTopic = policy.OwnsTopic

// MatchRule lets a test ask one rule.
func MatchRule(r Rule, clientID, username, key string, write bool) bool {
	return policy.FromShort([]Rule{r}).For(policy.Principal{ClientID: clientID, Username: username}).Allowed(keyAction(key, write)) != nil
}
