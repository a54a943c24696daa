package broker

// A propertyCache recognizes the properties of a client's next PUBLISH. Successive requests usually
// differ only in the Correlation Data and in the value of one User Property, such as a timestamp,
// and each keeps its length. All properties are then at the same positions as in the last PUBLISH.
// The cache saves a sixth of the CPU time of a small request.
type propertyCache struct {
	last        []byte // copy of the last properties; empty = none
	correlation span   // the Correlation Data in last; empty = none
	user        span   // the value of the User Property that differs; empty = none
}

// maxCached is the maximum size, in bytes, of the properties that a cache keeps.
const maxCached = 1 << 10

// decode reads the properties of a PUBLISH into p. p must still hold the properties of the last
// PUBLISH.
func (c *propertyCache) decode(p *properties, raw []byte) *Error {
	if c.matches(raw) {
		p.raw = raw
		return nil
	}
	err := p.decode(raw, publishProperties)
	if err == nil && hasWildcard(p.bytes(propResponseTopic)) { // [MQTT-3.3.2-14]
		err = violation("a response topic with wildcards")
	}
	if err != nil || len(raw) > maxCached {
		c.last = nil
		return err
	}
	c.correlation, c.user = span{}, span{}
	if p.seen.has(propCorrelation) {
		c.correlation = p.values[propCorrelation]
		c.correlation.from += 2 // skip the length of the Correlation Data
	}
	if p.seen.has(propUser) {
		c.findUser(raw, int(p.values[propUser].from)-1)
	}
	c.last = append(c.last[:0], raw...)
	return nil
}

// findUser looks at the consecutive User Properties that start at raw[at]. It sets c.user to the
// first one whose value differs from the value in c.last, or if none differs, to the first one.
func (c *propertyCache) findUser(raw []byte, at int) {
	for at < len(raw) && raw[at] == propUser {
		from := stringEnd(raw, at+1) + 2
		at = stringEnd(raw, from-2)
		differs := len(c.last) == len(raw) && string(c.last[from:at]) != string(raw[from:at])
		if differs || c.user == (span{}) {
			c.user = span{uint32(from), uint32(at)}
		}
		if differs {
			return
		}
	}
}

// matches reports whether raw differs from the last properties only in the Correlation Data and
// the value of the User Property in c.user.
func (c *propertyCache) matches(raw []byte) bool {
	a, b, last := c.correlation, c.user, c.last
	if a.from > b.from {
		a, b = b, a
	}
	return len(raw) > 0 && len(raw) == len(last) &&
		string(raw[:a.from]) == string(last[:a.from]) &&
		string(raw[a.to:b.from]) == string(last[a.to:b.from]) &&
		string(raw[b.to:]) == string(last[b.to:]) &&
		validText(raw[c.user.from:c.user.to])
}
