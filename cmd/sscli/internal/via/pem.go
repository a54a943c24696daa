package via

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// parseCertificates reads the certificates in PEM text. It is an error if there are none.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("the config map holds no certificate in PEM")
	}
	return list, nil
}
