// Command fetch does what a job on stdin says with quic-go's HTTP/3 client, on one connection, and writes what it got to stdout.
//
// The job and the answers are described in ../README.md.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// A request may take this long, with its body.
const deadline = 60 * time.Second

type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Range  string `json:"range"`
}

type job struct {
	Origin string      `json:"origin"`
	CA     string      `json:"ca"`
	Groups [][]request `json:"groups"`
}

type answer struct {
	Status       int    `json:"status"`
	Protocol     string `json:"protocol"`
	Length       string `json:"content_length"`
	ContentRange string `json:"content_range"`
	Bytes        int64  `json:"bytes"`
	SHA256       string `json:"sha256"`
}

type report struct {
	Client  string     `json:"client"`
	Answers [][]answer `json:"answers"`
}

func fetch(client *http.Client, origin string, wanted request) (answer, error) {
	ask, err := http.NewRequest(wanted.Method, origin+wanted.Path, nil)
	if err != nil {
		return answer{}, err
	}
	if wanted.Range != "" {
		ask.Header.Set("Range", wanted.Range)
	}
	response, err := client.Do(ask)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	digest := sha256.New()
	count, err := io.Copy(digest, response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("after %d bytes: %w", count, err)
	}
	return answer{
		Status:       response.StatusCode,
		Protocol:     response.Proto,
		Length:       response.Header.Get("Content-Length"),
		ContentRange: response.Header.Get("Content-Range"),
		Bytes:        count,
		SHA256:       hex.EncodeToString(digest.Sum(nil)),
	}, nil
}

// All requests of a group at once.
func fetchGroup(client *http.Client, origin string, group []request) ([]answer, error) {
	answers := make([]answer, len(group))
	failures := make([]error, len(group))
	var all sync.WaitGroup
	for i, wanted := range group {
		all.Add(1)
		go func() {
			defer all.Done()
			answers[i], failures[i] = fetch(client, origin, wanted)
		}()
	}
	all.Wait()
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("%s %s %s: %w", group[i].Method, group[i].Path, group[i].Range, err)
		}
	}
	return answers, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				return "quic-go " + module.Version
			}
		}
	}
	return "quic-go"
}

func run() error {
	var work job
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	pem, err := os.ReadFile(work.CA)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate", work.CA)
	}
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.Close()
	client := &http.Client{Transport: transport, Timeout: deadline}
	said := report{Client: version()}
	for _, group := range work.Groups {
		answers, err := fetchGroup(client, work.Origin, group)
		if err != nil {
			return err
		}
		said.Answers = append(said.Answers, answers)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
