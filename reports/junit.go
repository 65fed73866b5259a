package reports

import (
	"encoding/xml"
	"io"
	"strings"
	"time"

	"evalrun/harness"
	"evalrun/harness/stats"
)

// The JUnit form, as continuous integration reads it: an evaluation is a suite,
// a comparison by one metric is a test. Worse is a failure, undecided and a trend are skipped,
// and a comparison without rows is an error.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`
		Output    string      `xml:"system-out,omitempty"` // the candidates that were compared with nothing
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"`
		Skipped *junitResult `xml:"skipped"`
		Output  string       `xml:"system-out,omitempty"`
	}
	junitResult struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
	}
)

func writeJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: r.title()}
	for _, e := range r.Evaluations {
		s := junitSuite{Name: e.Name}
		if s.Name == "" {
			s.Name = r.title()
		}
		if t := r.Measured.Started; !t.IsZero() {
			s.Timestamp = t.Format(time.RFC3339)
		}
		for i, v := range e.Verdicts {
			c := junitCase{Class: s.Name, Name: v.Candidate + " against " + e.Comparisons[i].Baseline + ": " + v.Metric}
			switch v.Decision {
			case stats.Worse:
				c.Failure = &junitResult{string(v.Decision), v.Sentence}
				s.Failures++
			case stats.TooFewRows, harness.TrendOnly:
				c.Skipped = &junitResult{Message: v.Sentence}
				s.Skipped++
			case stats.Invalid:
				c.Error = &junitResult{string(v.Decision), v.Sentence}
				s.Errors++
			default:
				c.Output = v.Sentence
			}
			s.Cases = append(s.Cases, c)
		}
		s.Tests = len(s.Cases)
		var alone []string
		for _, p := range e.uncompared() {
			alone = append(alone, p.String())
		}
		s.Output = strings.Join(alone, "\n")
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}
