package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// secure makes what TLS needs and says it to the instances, as variables of
// their environment: a certificate between instances, and SASL over TLS to the
// brokers, whose authority deploy/kafka/kafka.sh made.
func (r *run) secure() ([]string, error) {
	if !r.cfg.TLS {
		return nil, nil
	}
	ca, cert, key, err := certificate("chaos")
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	dir := filepath.Join(r.trail.dir, "tls")
	err = os.MkdirAll(dir, 0o755)
	for name, b := range map[string][]byte{"ca.pem": ca, "cert.pem": cert, "key.pem": key} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	if err != nil {
		return nil, fmt.Errorf("write certificates: %w", err)
	}
	return []string{
		"STREAMGAUGE_LISTEN_TLS_CERT=" + filepath.Join(dir, "cert.pem"),
		"STREAMGAUGE_LISTEN_TLS_KEY=" + filepath.Join(dir, "key.pem"),
		"STREAMGAUGE_LISTEN_TLS_CA=" + filepath.Join(dir, "ca.pem"),
		"STREAMGAUGE_KAFKA_TLS_ENABLED=true",
		"STREAMGAUGE_KAFKA_TLS_CA=" + filepath.Join(r.cfg.Root, ".cache", "kafka", "tls", "ca.pem"),
		"STREAMGAUGE_KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		"STREAMGAUGE_KAFKA_SASL_USER=app",
		"STREAMGAUGE_KAFKA_SASL_PASSWORD=app-secret",
	}, nil
}

// certificate makes an authority and a certificate of it for one DNS name, and
// its key, as PEM.
func certificate(name string) (ca, cert, key []byte, err error) {
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chaos authority"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &root.PublicKey, root)
	if err != nil {
		return nil, nil, nil, err
	}
	certDER, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until, DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, &leaf.PublicKey, root)
	if err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leaf)
	if err != nil {
		return nil, nil, nil, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return block("CERTIFICATE", caDER), block("CERTIFICATE", certDER), block("PRIVATE KEY", keyDER), nil
}
