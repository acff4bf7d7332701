// A registry of images in memory, for tests: go-containerregistry's, which the tests of crane and ko use. With -cert it
// serves TLS, and with -login it wants a name and a password, by Basic or, with -token, by a token of its own.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	cert := flag.String("cert", "", "certificate (PEM)")
	key := flag.String("key", "", "its key (PEM)")
	login := flag.String("login", "", "NAME:PASSWORD that is wanted")
	byToken := flag.Bool("token", false, "want a token, for a name and a password")
	instead := flag.String("instead", "", "a folder with what is sent instead of blobs, by their digits")
	flag.Parse()

	options := []registry.Option{registry.Logger(log.New(os.Stderr, "", 0))}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	scheme := "http"
	if *cert != "" {
		scheme = "https"
	}
	here := scheme + "://" + listener.Addr().String()
	served := logged(perRepository(registry.New(options...), *instead))
	if *login != "" {
		served = guarded(served, *login, *byToken, here)
	}
	// The first line of stdout: where it is.
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: served}
	if *cert != "" {
		log.Fatal(server.ServeTLS(listener, *cert, *key))
	}
	log.Fatal(server.Serve(listener))
}

var blobPath = regexp.MustCompile(`^/v2/(.+)/blobs/(uploads/|sha256:)`)

// go-containerregistry's shows every blob in every repository; registries with rights do not, and take one from another
// repository when they are asked to mount it.
func perRepository(next http.Handler, instead string) http.Handler {
	var lock sync.Mutex
	known := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := blobPath.FindStringSubmatch(r.URL.Path)
		if found == nil {
			next.ServeHTTP(w, r)
			return
		}
		repository, query := found[1], r.URL.Query()
		mount, from, digest := query.Get("mount"), query.Get("from"), query.Get("digest")
		lock.Lock()
		has := known[repository+"@"+path.Base(r.URL.Path)]
		isMounted := mount != "" && known[from+"@"+mount]
		if isMounted {
			known[repository+"@"+mount] = true
		}
		if digest != "" {
			known[repository+"@"+digest] = true
		}
		lock.Unlock()
		other := filepath.Join(instead, strings.TrimPrefix(path.Base(r.URL.Path), "sha256:"))
		_, err := os.Stat(other)
		switch {
		case r.Method == http.MethodGet && instead != "" && err == nil:
			http.ServeFile(w, r, other)
		case r.Method == http.MethodHead && !has:
			w.WriteHeader(http.StatusNotFound)
		case isMounted:
			w.WriteHeader(http.StatusCreated)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Each request on a line of stderr, so that a test can count what was sent.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(os.Stderr, "request %s %s\n", r.Method, r.URL.RequestURI())
		next.ServeHTTP(w, r)
	})
}

func guarded(next http.Handler, login string, byToken bool, here string) http.Handler {
	name, password, _ := strings.Cut(login, ":")
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		log.Fatal(err)
	}
	token := hex.EncodeToString(random)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		givenName, givenPassword, _ := r.BasicAuth()
		hasLogin := givenName == name && givenPassword == password
		switch {
		case !byToken && hasLogin:
			next.ServeHTTP(w, r)
		case byToken && r.URL.Path == "/token" && hasLogin:
			fmt.Fprintf(w, `{"token": %q}`, token)
		case byToken && r.Header.Get("Authorization") == "Bearer "+token:
			next.ServeHTTP(w, r)
		default:
			challenge := `Basic realm="test"`
			if byToken {
				challenge = fmt.Sprintf(`Bearer realm="%s/token",service="test, with a comma",scope="repository:x:pull"`, here)
			}
			w.Header().Set("WWW-Authenticate", challenge)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"log in"}]}`, http.StatusUnauthorized)
		}
	})
}
