package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Batches of another client's encoder are read here, and ours there.
func TestInterop(t *testing.T) {
	fake, c := cluster(t)
	long := strings.Repeat("long and repetitive ", 2_000)
	theirs := map[Codec]kgo.CompressionCodec{
		None: kgo.NoCompression(), Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(),
		LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression(),
	}
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			tp := TopicPartition{"interop-" + codec.String(), 0}
			createTopic(t, c, tp.Topic, 1)
			k, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.ProducerBatchCompression(theirs[codec]),
				kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{tp.Topic: {0: kgo.NewOffset().AtStart()}}))
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			var want []string
			var records []*kgo.Record
			for i := range 20 {
				r := &kgo.Record{Topic: tp.Topic, Value: []byte(fmt.Sprint(i, long)), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{byte(i)}}}}
				records = append(records, r)
				want = append(want, string(r.Value))
			}
			if err := k.ProduceSync(within(t), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			r, _ := read(t, c, ReadCommitted, tp, 0)
			r.want(t, 20, fmt.Sprint(want))

			b := NewBatchBuilder(codec)
			for _, v := range want {
				b.Append(77, nil, []byte(v), []Header{{"h", nil}})
			}
			p := c.NewProducer(ProducerConfig{})
			defer background(t, p.Run)()
			var a acks
			if err := p.Produce(within(t), tp, b, a.done); err != nil {
				t.Fatal(err)
			}
			a.wait(t, 1, 0)
			for n := 0; n < 40; {
				fetches := k.PollFetches(within(t))
				if err := fetches.Err(); err != nil {
					t.Fatal(err)
				}
				fetches.EachRecord(func(r *kgo.Record) {
					if string(r.Value) != want[n%20] {
						t.Errorf("record %d differs", n)
					}
					if n >= 20 && (r.Timestamp.UnixMilli() != 77 || len(r.Headers) != 1 || r.Headers[0].Value != nil) {
						t.Errorf("record %d: %v %v", n, r.Timestamp, r.Headers)
					}
					n++
				})
			}
		})
	}
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	fake, _ := cluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	for name, config := range map[string]*tls.Config{"trusted": {RootCAs: pool}, "unknown authority": {}} {
		c, err := New(Config{Brokers: fake.ListenAddrs(), TLS: func() (*tls.Config, error) { return config, nil }})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ping(within(t))
		if ok := err == nil; ok != (config.RootCAs != nil) || !ok && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
