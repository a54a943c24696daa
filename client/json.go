package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

type plainScanResult ScanResult

// scanJSON is a ScanResult as JSON.
type scanJSON struct {
	plainScanResult
	Keys64 [][]byte `json:"Keys_b64,omitempty"` // in place of Keys if one of them is not UTF-8
}

// MarshalJSON returns an object with the fields of the result. If a key is not UTF-8, the keys are the member
// Keys_b64, each in Base64.
func (r ScanResult) MarshalJSON() ([]byte, error) {
	j := scanJSON{plainScanResult: plainScanResult(r)}
	if slices.ContainsFunc(r.Keys, func(key string) bool { return !utf8.ValidString(key) }) {
		for _, key := range r.Keys {
			j.Keys64 = append(j.Keys64, []byte(key))
		}
		j.Keys = nil
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *ScanResult) UnmarshalJSON(data []byte) error {
	j := scanJSON{plainScanResult: plainScanResult(*r)}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*r = ScanResult(j.plainScanResult)
	if j.Keys64 != nil {
		r.Keys = nil
		for _, key := range j.Keys64 {
			r.Keys = append(r.Keys, string(key))
		}
	}
	return nil
}

type plainLockStatus LockStatus

// lockStatusJSON is a LockStatus as JSON.
type lockStatusJSON struct {
	plainLockStatus
	Name64 []byte `json:"Name_b64,omitempty"` // in place of Name if it is not UTF-8
}

// MarshalJSON returns an object with the fields of the status. A Name that is not UTF-8 is the member Name_b64, in
// Base64.
func (s LockStatus) MarshalJSON() ([]byte, error) {
	j := lockStatusJSON{plainLockStatus: plainLockStatus(s)}
	if !utf8.ValidString(s.Name) {
		j.Name, j.Name64 = "", []byte(s.Name)
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *LockStatus) UnmarshalJSON(data []byte) error {
	j := lockStatusJSON{plainLockStatus: plainLockStatus(*s)}
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*s = LockStatus(j.plainLockStatus)
	if j.Name64 != nil {
		s.Name = string(j.Name64)
	}
	return nil
}

// readBackJSON is a ReadBackResult as JSON.
type readBackJSON struct {
	Outcome Outcome
	Now     GetResult
	Result  json.RawMessage
	Type    string `json:"Result_type,omitempty"` // the type of Result: set or call; empty = nil
}

// MarshalJSON returns an object with the fields of the result, and the member Result_type, which is set or call
// if there is a Result.
func (r ReadBackResult) MarshalJSON() ([]byte, error) {
	j := readBackJSON{Outcome: r.Outcome, Now: r.Now}
	switch r.Result.(type) {
	case nil:
	case SetResult:
		j.Type = "set"
	case CallResult:
		j.Type = "call"
	default:
		return nil, fmt.Errorf("a %T cannot be the Result of a ReadBackResult", r.Result)
	}
	var err error
	if j.Result, err = json.Marshal(r.Result); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *ReadBackResult) UnmarshalJSON(data []byte) (err error) {
	var j readBackJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*r = ReadBackResult{Outcome: j.Outcome, Now: j.Now}
	switch j.Type {
	case "":
	case "set":
		r.Result, err = unmarshalResult[SetResult](j.Result)
	case "call":
		r.Result, err = unmarshalResult[CallResult](j.Result)
	default:
		err = fmt.Errorf("bad Result_type %.80q: expected set or call", j.Type)
	}
	return err
}

func unmarshalResult[R Result](data []byte) (Result, error) {
	var r R
	err := json.Unmarshal(data, &r)
	return r, err
}
