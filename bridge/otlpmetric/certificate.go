package otlpmetric

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// checkCertificates reads the files as the exporter will.
func checkCertificates() error {
	return errors.Join(checkAuthorities(), checkClient(special), checkClient(general))
}

func checkAuthorities() error {
	name, path := lookup("CERTIFICATE")
	if name == "" {
		return nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: %s has no certificate in PEM form", name, path)
	}
	return nil
}

// checkClient checks a pair of variables. The pair for metrics and the one for
// all signals aren't mixed.
func checkClient(prefix string) error {
	certName, keyName := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	certPath, keyPath := get(certName), get(keyName)
	switch {
	case certPath == "" && keyPath == "":
		return nil
	case keyPath == "":
		return fmt.Errorf("%s is set and %s isn't: a client's certificate needs its key", certName, keyName)
	case certPath == "":
		return fmt.Errorf("%s is set and %s isn't: a client's key needs its certificate", keyName, certName)
	}
	cert, err := os.ReadFile(certPath)
	if err != nil {
		return fmt.Errorf("%s: %w", certName, err)
	}
	key, err := os.ReadFile(keyPath)
	if err != nil {
		return fmt.Errorf("%s: %w", keyName, err)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return fmt.Errorf("%s=%s, %s=%s: %w", certName, certPath, keyName, keyPath, err)
	}
	return nil
}
