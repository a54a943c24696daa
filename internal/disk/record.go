package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A Record is a key and its state.
type Record struct {
	Key     []byte
	Value   []byte
	Version []byte // an HLC as text
	Fence   []byte // the fencing token as text; empty = none
	Expires int64  // in microseconds since the Unix epoch; 0 = never
	Persist bool   // the last write asked for the key to be kept on disk
}

const (
	flagPersist = 1 << iota
	flagExpires
	flagKey // the record includes the key

	knownFlags = flagPersist | flagExpires | flagKey
)

// headerSize is the size of the flags and the checksum, in bytes.
const headerSize = 1 + 4

// appendRecord appends the encoding of a record in the file:
//
//	1 byte   flags
//	4        CRC-32C of the key, the flags and the bytes after this checksum
//	(8       the expiry)
//	(length and bytes of the key, in the bucket long)
//	length and bytes of the version
//	length and bytes of the fencing token
//	value
//
// Fields in parentheses are optional. Numbers are little endian; lengths are unsigned varints.
func appendRecord(dst []byte, r Record, withKey bool) []byte {
	begin := len(dst)
	flags := byte(0)
	if r.Persist {
		flags |= flagPersist
	}
	if r.Expires != 0 {
		flags |= flagExpires
	}
	if withKey {
		flags |= flagKey
	}
	dst = append(dst, flags, 0, 0, 0, 0)
	if r.Expires != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Expires))
	}
	if withKey {
		dst = appendBytes(dst, r.Key)
	}
	dst = appendBytes(dst, r.Version)
	dst = appendBytes(dst, r.Fence)
	dst = append(dst, r.Value...)
	binary.LittleEndian.PutUint32(dst[begin+1:], checksum(r.Key, flags, dst[begin+headerSize:]))
	return dst
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func checksum(key []byte, flags byte, rest []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the standard library caches this table
	sum := crc32.Update(0, table, key)
	sum = crc32.Update(sum, table, []byte{flags})
	return crc32.Update(sum, table, rest)
}

var (
	errShortRecord = errors.New("the record is truncated")
	errChecksum    = errors.New("the checksum of the record does not match")
	errFlags       = errors.New("the record has unknown flags")
)

// parseRecord decodes a record. key is the key in bbolt: the record's key or, if long is set, the hash of
// the record's key. The returned slices alias key and data.
func parseRecord(key, data []byte, long bool) (Record, error) {
	r := Record{Key: key}
	if len(data) < headerSize {
		return r, errShortRecord
	}
	flags, sum, rest := data[0], binary.LittleEndian.Uint32(data[1:]), data[headerSize:]
	if flags&^knownFlags != 0 || flags&flagKey != 0 != long {
		return r, errFlags
	}
	body := rest
	r.Persist = flags&flagPersist != 0
	if flags&flagExpires != 0 {
		if len(body) < 8 {
			return r, errShortRecord
		}
		r.Expires, body = int64(binary.LittleEndian.Uint64(body)), body[8:]
		if r.Expires == 0 {
			return r, errFlags
		}
	}
	fields := []*[]byte{&r.Version, &r.Fence}
	if long {
		fields = []*[]byte{&r.Key, &r.Version, &r.Fence}
	}
	for _, field := range fields {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > uint64(len(body)-size) {
			return r, errShortRecord
		}
		*field, body = body[size:size+int(n):size+int(n)], body[size+int(n):]
	}
	r.Value = body
	if checksum(r.Key, flags, rest) != sum || long && string(filedUnder(r.Key)) != string(key) {
		return r, errChecksum
	}
	return r, nil
}
