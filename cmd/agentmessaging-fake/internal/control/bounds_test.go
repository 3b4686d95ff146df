package control

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSeededExchangesAreBounded(t *testing.T) {
	exchange := exchangeSpec{Text: "a", ReplyText: strings.Repeat("b", maxSeeded-1)}
	assert.Nil(t, flawOfExchanges([]exchangeSpec{exchange}))
	for _, longer := range []exchangeSpec{
		{Text: "a", ReplyText: exchange.ReplyText, UserRef: "c"}, {Text: "a", ReplyText: exchange.ReplyText, TraceID: "c"},
		{Text: "a", ReplyText: exchange.ReplyText, Warnings: []string{"", ""}}, {Text: "aa", ReplyText: exchange.ReplyText},
	} {
		assert.NotNil(t, flawOfExchanges([]exchangeSpec{longer}))
	}
}

func TestBodiesAreNotDeep(t *testing.T) {
	deep := strings.Repeat(`{"kind":"lose_reply","how":`, 9000) + `{"kind":"hang"}` + strings.Repeat("}", 9000)
	_, refused := decode[faultRule]([]byte(`{"fault":` + deep + `}`))
	if assert.NotNil(t, refused) {
		assert.Less(t, len(refused.Reason), 500)
	}
}
