package emulator

// MatchRule lets a test ask one rule.
func MatchRule(r Rule, clientID, username, key string, write bool) bool {
	return r.allows(clientID, username, key, write)
}
