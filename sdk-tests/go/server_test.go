package sdktests

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// As in the configuration.
const (
	apiKey       = "the key of the sdk tests"
	secret       = "the secret of the sdk tests"
	refreshGrace = 2 * time.Second
)

// address is the address of the server under test, for all tests.
var address string

func TestMain(m *testing.M) {
	os.Exit(runWithServer(m))
}

// runWithServer runs the tests while `linerate serve` runs.
func runWithServer(m *testing.M) int {
	started, stop := startServer("")
	defer stop()
	address = started
	return m.Run()
}

// startServer starts `linerate serve` on a free port; environment changes its configuration, and
// toml is added to it. It returns the address, and what ends the server.
func startServer(toml string, environment ...string) (string, func()) {
	binary := os.Getenv("LINERATE_BIN")
	if binary == "" {
		binary = "../../target/release/linerate"
	}
	directory, err := os.MkdirTemp("", "linerate-sdk-")
	check(err)
	configuration := filepath.Join(directory, "linerate.toml")
	common, err := os.ReadFile("../linerate.toml")
	check(err)
	check(os.WriteFile(configuration, append(common, toml...), 0o600))
	server := exec.Command(binary, "serve", "--config", configuration)
	server.Env = append(os.Environ(), environment...)
	stdout, err := server.StdoutPipe()
	check(err)
	check(server.Start())
	stop := func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(directory)
	}
	lines := bufio.NewScanner(stdout)
	address := ""
	for address == "" {
		if !lines.Scan() {
			stop()
			panic(binary + " did not print an address")
		}
		address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	go func() {
		// A full pipe would stop the server.
		for lines.Scan() {
		}
	}()
	return address, stop
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// api calls the server API.
func api(t *testing.T, method string, parameters map[string]any) {
	t.Helper()
	body, err := json.Marshal(parameters)
	must(t, err)
	request, err := http.NewRequest("POST", "http://"+address+"/api/"+method, bytes.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-API-Key", apiKey)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var reply struct{ Error any }
	must(t, json.NewDecoder(response.Body).Decode(&reply))
	if response.StatusCode != http.StatusOK || reply.Error != nil {
		t.Fatalf("%s: %s %v", method, response.Status, reply.Error)
	}
}

// publish publishes the payloads in order.
func publish(t *testing.T, channel string, payloads ...any) {
	t.Helper()
	for _, data := range payloads {
		api(t, "publish", map[string]any{"channel": channel, "data": data})
	}
}

// token creates a token for a user, like an application's backend.
func token(user string, lasts time.Duration) string {
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, user, time.Now().Add(lasts).Unix())
	parts := []string{encoded([]byte(`{"alg":"HS256","typ":"JWT"}`)), encoded([]byte(claims))}
	head := strings.Join(parts, ".")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(head))
	return head + "." + encoded(mac.Sum(nil))
}

func encoded(data []byte) string {
	return base64.RawURLEncoding.EncodeToString(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
