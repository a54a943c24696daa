package via

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parseConfigMap returns the values of a config map, joined in the order of their keys, and the
// certificates in them. It fails if the values hold no certificate in PEM.
func parseConfigMap(text []byte) (bundle []byte, certificates []*x509.Certificate, err error) {
	var m struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, nil, fmt.Errorf("not a config map: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		bundle = append(bundle, strings.TrimSpace(m.Data[key])+"\n"...)
	}
	certificates, err = parseCertificates(bundle)
	return bundle, certificates, err
}

// parseCertificates returns the certificates in PEM text. It fails if there are none.
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
