package policy

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// typeNames has the types of a subject's parts, each with the names that RFC 4514, openssl and Windows write.
const typeNames = `2.5.4.3 CN commonName
2.5.4.4 SN surname
2.5.4.5 serialNumber
2.5.4.6 C countryName
2.5.4.7 L localityName
2.5.4.8 ST S stateOrProvinceName
2.5.4.9 street streetAddress
2.5.4.10 O organizationName
2.5.4.11 OU organizationalUnitName
2.5.4.12 title T
2.5.4.13 description
2.5.4.15 businessCategory
2.5.4.17 postalCode
2.5.4.41 name
2.5.4.42 GN G givenName
2.5.4.43 initials I
2.5.4.44 generationQualifier
2.5.4.45 x500UniqueIdentifier
2.5.4.46 dnQualifier
2.5.4.65 pseudonym
2.5.4.97 organizationIdentifier
0.9.2342.19200300.100.1.1 UID userId
0.9.2342.19200300.100.1.25 DC domainComponent
1.2.840.113549.1.9.1 emailAddress E email
1.2.840.113549.1.9.2 unstructuredName
1.2.840.113549.1.9.8 unstructuredAddress
1.3.6.1.4.1.311.60.2.1.1 jurisdictionL jurisdictionLocalityName
1.3.6.1.4.1.311.60.2.1.2 jurisdictionST jurisdictionStateOrProvinceName
1.3.6.1.4.1.311.60.2.1.3 jurisdictionC jurisdictionCountryName
`

// typeOf returns the object identifier of a type of which a subject has the name or the identifier.
func typeOf(name string) (id string, known bool) {
	for line := range strings.Lines(typeNames) {
		words := strings.Fields(line)
		if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, name) }) {
			return words[0], true
		}
	}
	numbers := strings.Split(name, ".")
	return name, len(numbers) > 1 && !slices.ContainsFunc(numbers, func(text string) bool {
		n, err := strconv.ParseUint(text, 10, 32)
		return err != nil || strconv.FormatUint(n, 10) != text
	})
}

// Subject returns the text that stands for the subject of a parsed certificate in [Attributes]. It has all parts, with
// their types, in any order. No user name is like it, because MQTT forbids NUL.
func Subject(name pkix.Name) string {
	var parts []string
	for _, p := range name.Names {
		parts = append(parts, subjectPart(p.Type.String(), fmt.Sprint(p.Value)))
	}
	return subjectOf(parts)
}

func subjectPart(id, value string) string { return id + "=" + strconv.Quote(value) }

func subjectOf(parts []string) string {
	slices.Sort(parts)
	return "\x00" + strings.Join(parts, ",")
}

// likeSubject reports whether a text begins as a subject does, with a type.
func likeSubject(text string) bool {
	name, _, found := strings.Cut(text, "=")
	if !found {
		return false
	}
	_, known := typeOf(strings.Trim(name, "/ "))
	return known
}

// parseSubject returns the text that [Subject] returns for a subject written as RFC 4514 says or as openssl prints it,
// such as `C = US, O = "Contoso, Inc.", CN = fan`. why says what is wrong.
func parseSubject(text string) (subject, why string) {
	var parts []string
	for rest, more := strings.TrimRight(text, "\r\n"), true; more; {
		name, value, found := strings.Cut(rest, "=")
		name = strings.Trim(name, " ")
		id, known := typeOf(name)
		switch {
		case !found:
			return "", "expected TYPE = VALUE, such as CN = fan, with commas between them"
		case !known:
			return "", fmt.Sprintf("unknown type %.40q: expected one such as CN, O, OU or 2.5.4.3", name)
		}
		if value, rest, more, why = cutValue(value); why != "" {
			return "", why
		}
		parts = append(parts, subjectPart(id, value))
	}
	return subjectOf(parts), ""
}

// cutValue returns the value at the beginning of a text, and what follows the separator after it, if there is more.
func cutValue(text string) (value, rest string, more bool, why string) {
	text = strings.TrimLeft(text, " ")
	if encoded, is := strings.CutPrefix(text, "#"); is {
		end := strings.IndexAny(encoded+",", ",+")
		value, why = decodeValue(strings.TrimRight(encoded[:end], " "))
		return value, encoded[min(end+1, len(encoded)):], end < len(encoded), why
	}
	text, quoted := strings.CutPrefix(text, `"`)
	closed := false
	var all []byte
	n := 0 // length of all without spaces at its end that no backslash precedes
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case !quoted && (c == ',' || c == '+'):
			return string(all[:n]), text[i+1:], true, utf8Only(all)
		case closed && c == ' ':
		case closed:
			return "", "", false, "text after a closing quote"
		case c == '\\':
			b, length := unescape(text[i+1:])
			if length == 0 {
				return "", "", false, `a backslash that escapes nothing: expected one such as \, or \2C`
			}
			all = append(all, b)
			n, i = len(all), i+length
		case quoted && c == '"':
			quoted, closed = false, true
			n = len(all)
		case !quoted && strings.IndexByte(`";<>`, c) >= 0:
			return "", "", false, fmt.Sprintf(`%c without a backslash or quotes`, c)
		default:
			all = append(all, c)
			if c != ' ' {
				n = len(all)
			}
		}
	}
	if quoted {
		return "", "", false, "a quote that is not closed"
	}
	return string(all[:n]), "", false, utf8Only(all)
}

// unescape returns the byte that the text after a backslash stands for, and the length of that text, or 0.
func unescape(text string) (b byte, length int) {
	if len(text) >= 2 {
		if b, err := hex.DecodeString(text[:2]); err == nil {
			return b[0], 2
		}
	}
	if text != "" && strings.IndexByte(` "#+,;<=>\`, text[0]) >= 0 {
		return text[0], 1
	}
	return 0, 0
}

// decodeValue returns the text of a value in hexadecimal digits, BER.
func decodeValue(digits string) (value, why string) {
	var decoded any
	encoded, err := hex.DecodeString(digits)
	if err == nil {
		_, err = asn1.Unmarshal(encoded, &decoded)
	}
	if value, is := decoded.(string); is && err == nil {
		return value, ""
	}
	return "", "a value that begins with # is not the encoding of a text"
}

func utf8Only(value []byte) (why string) {
	if !utf8.Valid(value) {
		return "a value that is not UTF-8"
	}
	return ""
}
