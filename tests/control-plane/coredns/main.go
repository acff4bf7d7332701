// Package main is CoreDNS with the plugins that a cluster's names need, and no others:
// nothing in it can ask a server outside the cluster.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
)

func init() {
	// The order in which a request passes them.
	dnsserver.Directives = []string{"errors", "health", "ready", "cache", "loadbalance", "kubernetes"}
}

func main() { coremain.Run() }
