// Command serve serves the files of a directory with quic-go's HTTP/3 server, until it is killed.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: serve ADDRESS CERTIFICATE KEY DIRECTORY")
		os.Exit(2)
	}
	server := http3.Server{Addr: os.Args[1], Handler: http.FileServer(http.Dir(os.Args[4]))}
	fmt.Fprintln(os.Stderr, "error:", server.ListenAndServeTLS(os.Args[2], os.Args[3]))
	os.Exit(1)
}
