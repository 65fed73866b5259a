package reports

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser opens a page in a headless browser, which finds no host, and returns
// the document after the page's script ran, and what the browser complained of.
type browser struct{ path string }

func findBrowser(t *testing.T) browser {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return browser{path}
		}
	}
	t.Skip("no browser: install chromium or google-chrome to have the page's script tested")
	return browser{}
}

func (b browser) open(t *testing.T, address string, flags ...string) (dom, complaints string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--no-first-run", "--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND",
		"--enable-logging=stderr", "--v=0", "--timeout=20000",
	}, flags...)
	cmd := exec.CommandContext(ctx, b.path, append(args, "--dump-dom", address)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", b.path, err, errs.String())
	}
	for _, line := range strings.Split(errs.String(), "\n") {
		if strings.Contains(line, "CONSOLE") { // what the page logged, or broke
			complaints += line + "\n"
		}
	}
	return out.String(), complaints
}

func TestInABrowser(t *testing.T) {
	b := findBrowser(t)
	// The control: a complaint is seen when there is one.
	if _, complaints := b.open(t, "data:text/html,<script>throw new Error('planted')</script>"); !strings.Contains(complaints, "planted") {
		t.Fatalf("a page that fails was not noticed: %q", complaints)
	}
	reports := fixtures(t)
	dir := t.TempDir()
	address := map[string]string{}
	for _, name := range []string{"better", "hostile"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		files, err := Write(filepath.Join(dir, name), reports[name], []string{"html"})
		if err != nil {
			t.Fatal(err)
		}
		address[name] = "file://" + files[0]
	}
	shown := regexp.MustCompile(`<li class="row (\w+)"[^>]*>`)
	count := func(dom string) (visible map[string]int) {
		visible = map[string]int{}
		for _, m := range shown.FindAllStringSubmatch(dom, -1) {
			if !strings.Contains(m[0], "hidden") {
				visible[m[1]]++
			}
		}
		return visible
	}

	for _, c := range []struct {
		fragment      string
		worse, better int
		says          string
	}{
		{"", 10, 69, "79 of 79 shown"},
		{"#filter=worse", 10, 0, "10 of 79 shown"},
		{"#filter=better", 0, 69, "69 of 79 shown"},
		{"#filter=failed", 0, 0, "0 of 79 shown"},
		{"#filter=worse&search=KETTLE", 0, 0, ""}, // how many is counted below
	} {
		dom, complaints := b.open(t, address["better"]+c.fragment)
		if complaints != "" {
			t.Errorf("%s: the browser complains: %s", c.fragment, complaints)
		}
		text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(dom, ""))
		if want := strings.ReplaceAll(reports["better"].Evaluations[0].Verdicts[0].Sentence, "`", ""); !strings.Contains(text, want) {
			t.Errorf("%s: the page does not say %s", c.fragment, want)
		}
		got := count(dom)
		if strings.Contains(c.fragment, "search") {
			for _, row := range reports["better"].Evaluations[0].changes[0].Rows {
				if row.Worse() && strings.Contains(row.Inputs[0].Text, "kettle") {
					c.worse++
				}
			}
		}
		if got["worse"] != c.worse || got["better"] != c.better || !strings.Contains(text, c.says) {
			t.Errorf("%q shows %v, want %d worse, %d better, and %q", c.fragment, got, c.worse, c.better, c.says)
		}
		if strings.Contains(dom, `class="tools" hidden`) {
			t.Errorf("%s: the filters are hidden, so the script did not run", c.fragment)
		}
	}

	// What was said does nothing: no script of it ran, no element came of it.
	dom, complaints := b.open(t, address["hostile"])
	if complaints != "" {
		t.Errorf("the browser complains: %s", complaints)
	}
	if n := strings.Count(dom, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if m := regexp.MustCompile(`<(img|b|i|u|m|o|q|class|textarea)[ >]`).FindString(dom); m != "" {
		t.Errorf("the page has an element %s", m)
	}
}

// Served from an address, where it could load more, the page asks for itself and
// nothing else.
func TestPageLoadsNothing(t *testing.T) {
	b := findBrowser(t)
	page := written(t, fixtures(t)["hostile"], "html")
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	dom, _ := b.open(t, server.URL+"/report.html", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
	if !strings.Contains(dom, "evalrun report") {
		t.Fatalf("the page did not come: %.200s", dom)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "/report.html" {
		t.Errorf("the page asked for %q", asked)
	}
}
