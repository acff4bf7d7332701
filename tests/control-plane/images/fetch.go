// Fetch prints what a URL answers. Names are looked up as the pod's resolv.conf says: busybox's
// own wget cannot do that in an image without libraries.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fetch URL")
		os.Exit(2)
	}
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil || answer.StatusCode >= 400 {
		fmt.Fprintln(os.Stderr, answer.Status, err)
		os.Exit(1)
	}
}
