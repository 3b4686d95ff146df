package fakeserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// headers are what a program may put into Request.Header, right or wrong. want
// is a status, or 0 where nothing is sent.
var headers = map[string]struct {
	header http.Header
	want   int
}{
	"none":                      {http.Header{}, 401},
	"nil":                       {nil, 0},
	"lower case":                {http.Header{"authorization": {"Bearer amk_fake_000001"}}, 200},
	"two cases":                 {http.Header{"authorization": {"Bearer amk_fake_000001"}, "Authorization": {"Bearer amk_fake_000001"}}, 401},
	"three cases in order":      {http.Header{"x-a": {"3"}, "X-a": {"2"}, "X-A": {"1", "1b"}}, 401},
	"trailing space":            {http.Header{"Authorization": {"Bearer amk_fake_000001 \t"}}, 200},
	"leading space":             {http.Header{"Authorization": {" \tBearer amk_fake_000001"}}, 200},
	"tab inside":                {http.Header{"Authorization": {"Bearer\tamk_fake_000001"}}, 401},
	"not ASCII":                 {http.Header{"X-A": {"é\xff"}}, 401},
	"line feed in a value":      {http.Header{"X-A": {"b\nX-B: c"}}, 0},
	"return in a value":         {http.Header{"X-A": {"b\r"}}, 0},
	"zero byte in a value":      {http.Header{"X-A": {"b\x00"}}, 0},
	"delete in a value":         {http.Header{"X-A": {"b\x7f"}}, 0},
	"line feed in a name":       {http.Header{"X-A\n": {"b"}}, 0},
	"space in a name":           {http.Header{"X A": {"b"}}, 0},
	"colon in a name":           {http.Header{"X:A": {"b"}}, 0},
	"not ASCII in a name":       {http.Header{"X-é": {"b"}}, 0},
	"bad byte in a name":        {http.Header{"X-\xff": {"b"}}, 0},
	"no name":                   {http.Header{"": {"b"}}, 0},
	"odd name":                  {http.Header{"x!#$%&'*+.^_`|~9": {"b"}}, 401},
	"no value":                  {http.Header{"X-A": {}}, 401},
	"empty value":               {http.Header{"X-A": {" "}}, 401},
	"no User-Agent":             {http.Header{"User-Agent": {""}}, 401},
	"two User-Agents":           {http.Header{"User-Agent": {"a", "b"}}, 401},
	"user-agent":                {http.Header{"user-agent": {"a"}}, 401},
	"own Host":                  {http.Header{"Host": {"example.com"}}, 401},
	"own Content-Length":        {http.Header{"Content-Length": {"7"}}, 401},
	"own Transfer-Encoding":     {http.Header{"Transfer-Encoding": {"chunked"}}, 401},
	"own Trailer":               {http.Header{"Trailer": {"X-Sum"}}, 401},
	"accept-encoding":           {http.Header{"accept-encoding": {"br"}}, 401},
	"Accept-Encoding":           {http.Header{"Accept-Encoding": {"br"}}, 401},
	"empty Accept-Encoding":     {http.Header{"Accept-Encoding": {""}}, 401},
	"Range":                     {http.Header{"Range": {"bytes=0-"}}, 401},
	"content-type in two cases": {http.Header{"content-type": {"text/plain"}, "Content-Type": {"application/json"}}, 401},
}

// Each header over three ways.
func TestHeadersOnThreeWays(t *testing.T) {
	for name, row := range headers {
		t.Run(name, func(t *testing.T) {
			var seens [3]seen
			var gots [3]got
			for way := range gots {
				callers, arrived := newStage(t, nil).ways(t)
				r := callOf(t, "GET", "https://"+host+"/v1/status", "", "")
				r.Header = row.header
				gots[way] = get(callers[way].RoundTrip(r))
				if row.want != 0 {
					seens[way] = <-arrived
				}
				assert.Empty(t, arrived)
			}
			assert.Equal(t, row.want != 0, gots[1].Error == "", gots[1].Error)
			if row.want != 0 {
				assert.Contains(t, gots[1].Status, http.StatusText(row.want))
			}
			assert.Equal(t, seens[1], seens[0])
			assert.Equal(t, gots[1], gots[0])
			assert.Equal(t, butFor(seens[1]), butFor(seens[2]), "direct")
			assert.Equal(t, gots[1], gots[2], "direct")
		})
	}
}

func TestMethodsThatNoTransportSends(t *testing.T) {
	for _, method := range []string{"GET\n", "G ET", "GÉT", "GET\x00"} {
		callers, _ := newStage(t, nil).ways(t)
		var gots [3]got
		for way := range gots {
			r := callOf(t, "GET", "https://"+host+"/v1/status", "", "")
			r.Method = method
			gots[way] = get(callers[way].RoundTrip(r))
		}
		assert.NotEmpty(t, gots[1].Error)
		assert.Equal(t, [3]got{gots[1], gots[1], gots[1]}, gots)
	}
}
