package process

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Redact hides the user info of a URL, also of one that can't be parsed.
func Redact(s string) string {
	end := strings.LastIndex(s, "@")
	if end < 0 {
		return s
	}
	scheme, _, found := strings.Cut(s[:end], "://")
	if !found {
		return "***" + s[end:]
	}
	return scheme + "://***" + s[end:]
}

var (
	secretFlag = regexp.MustCompile(`(?i)(--?[a-z-]*(?:key|password|passwd|token|secret)[ =])\S+`)
	userInfo   = regexp.MustCompile(`://[^/@\s]+@`)
)

// WithoutSecrets masks what a command line says after a flag for a secret, and
// the users of URLs.
func WithoutSecrets(commandLine string) string {
	return userInfo.ReplaceAllString(secretFlag.ReplaceAllString(commandLine, "${1}***"), "://***@")
}

// maskedError is an error whose text may repeat secrets, without them.
type maskedError struct {
	error
	secrets *strings.Replacer
}

func (e *maskedError) Error() string { return e.secrets.Replace(e.error.Error()) }
func (e *maskedError) Unwrap() error { return e.error }

// Mask hides the secrets that aren't empty in what err says, also as YAML, JSON and
// URLs write them.
func Mask(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	var pairs []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{s, strings.ReplaceAll(s, "'", "''"), quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s)} {
			pairs = append(pairs, form, "***")
		}
	}
	return &maskedError{err, strings.NewReplacer(pairs...)}
}
