package reports

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"
)

// withoutCode is a page without its style and script, which have tests of their
// own.
func withoutCode(page []byte) []byte {
	return regexp.MustCompile(`(?s)(<style>).*?(</style>)|(<script>).*?(</script>)`).ReplaceAll(page, []byte("$1$2$3$4"))
}

var (
	// loads are attributes and functions by which a page fetches something.
	loads  = regexp.MustCompile(`(?i)\b(?:src|href|srcset|data|action|formaction|poster|ping|background|cite|xlink:href)\s*=\s*["']?([^"'\s>]*)|url\(([^)]*)\)|@import\s+(\S+)`)
	tags   = regexp.MustCompile(`(?s)<[a-zA-Z/!][^>]*>`)
	policy = regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
)

func TestPageAsksNothingOfANetwork(t *testing.T) {
	for name, r := range fixtures(t) {
		page := written(t, r, "html")
		for _, tag := range tags.FindAll(withoutCode(page), -1) {
			for _, m := range loads.FindAllSubmatch(tag, -1) {
				where := string(bytes.Join(m[1:], nil))
				if !strings.HasPrefix(where, "#") && where != "data:," {
					t.Errorf("%s: %s loads %q", name, tag, where)
				}
			}
			if regexp.MustCompile(`(?i)\son[a-z]+\s*=`).Match(regexp.MustCompile(`"[^"]*"`).ReplaceAll(tag, nil)) {
				t.Errorf("%s: %s has a script of its own", name, tag)
			}
		}
		for _, code := range []string{pageStyle, pageScript} {
			if m := regexp.MustCompile(`(?i)https?:|url\(|@import|fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(`).FindString(code); m != "" {
				t.Errorf("style or script has %q", m)
			}
			if !bytes.Contains(page, []byte(code)) {
				t.Errorf("%s: style or script is not in the page as it is, so its hash is wrong", name)
			}
		}
		m := policy.FindSubmatch(page)
		if m == nil {
			t.Fatalf("%s: no policy", name)
		}
		for _, want := range []string{"default-src 'none'", "script-src " + sourceHash(pageScript), "style-src " + sourceHash(pageStyle)} {
			if !strings.Contains(html.UnescapeString(string(m[1])), want) {
				t.Errorf("%s: the policy lacks %s: %s", name, want, m[1])
			}
		}
	}
}

func TestPageQuotesWhatItShows(t *testing.T) {
	page := string(withoutCode(written(t, fixtures(t)["hostile"], "html")))
	if n := strings.Count(page, "<script>"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, bad := range []string{"<img", "<b>", "<i>", "<u>", "<class>", "<m>", "onerror=alert(2)>", "<textarea"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page as markup", bad)
		}
	}
	// What was said is there all the same, letter by letter.
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""))
	for _, want := range []string{`<script>alert("1")</script><img src=x onerror=alert(2)>`, `{{.}} {{ env.KEY }} ${KEY}`, "مرحبا بالعالم", "👩‍👩‍👧", "`base`|{{.}}", "<i>exact</i>|match", "javascript:alert(3)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageIsForEverybody(t *testing.T) {
	for name, r := range fixtures(t) {
		page := string(written(t, r, "html"))
		for _, want := range []string{`<html lang="en">`, "<title>" + html.EscapeString(r.title()), "prefers-color-scheme: dark", "@media print", "max-width: 640px"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %s", name, want)
			}
		}
		body := string(withoutCode([]byte(page)))
		tables := strings.Count(body, "<table")
		if captions := strings.Count(body, "<caption>"); captions != tables || tables == 0 {
			t.Errorf("%s: %d tables, %d captions", name, tables, captions)
		}
		for _, th := range regexp.MustCompile(`<th[ >][^>]*`).FindAllString(body, -1) {
			if !strings.Contains(th, "scope=") && !strings.HasPrefix(th, "<thead") {
				t.Errorf("%s: %s has no scope", name, th)
			}
		}
		drawn := strings.Count(body, `<svg role="img"`)
		if titles, descs := strings.Count(body, "<title>")-1, strings.Count(body, "<desc>"); titles != drawn || descs != drawn {
			t.Errorf("%s: %d drawings, %d titles, %d descriptions", name, drawn, titles, descs)
		}
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			if ids[m[1]] {
				t.Errorf("%s: the id %s occurs twice", name, m[1])
			}
			ids[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`href="#([^"]*)"|aria-labelledby="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			if !ids[m[1]+m[2]] {
				t.Errorf("%s: nothing has the id %s", name, m[1]+m[2])
			}
		}
	}
}

func TestPageBeginsWithTheVerdict(t *testing.T) {
	r := fixtures(t)["better"]
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(withoutCode(written(t, r, "html"))), ""))
	verdict := strings.ReplaceAll(r.Evaluations[0].Verdicts[0].Sentence, "`", "")
	at := strings.Index(text, verdict)
	if at < 0 || at > strings.Index(text, "rows asked") {
		t.Errorf("the verdict is at %d of the page's text", at)
	}
}

func TestLongTextIsClipped(t *testing.T) {
	short := strings.Repeat("word ", 100)
	if c := clip(short); !c.Whole || c.Head != short {
		t.Errorf("a short text was clipped: %+v", c)
	}
	long := strings.Repeat("日本語", 5000)
	c := clip(long)
	if c.Whole || !c.Cut || len([]rune(c.Head)) > 400 || len([]rune(c.Body)) != maxText || c.Size != "15,000" {
		t.Errorf("a long text: whole %v, cut %v, head %d, body %d, size %s", c.Whole, c.Cut, len([]rune(c.Head)), len([]rune(c.Body)), c.Size)
	}
	lines := strings.Repeat("line\n", 100)
	if c := clip(lines); c.Whole || c.Cut || strings.Count(c.Head, "\n") > 8 || c.Body != lines {
		t.Errorf("many lines: %+v", c)
	}
}
