package contract

func (s *suite) warmUps() {
	const (
		modes       = "When present: `mode` (string, hosted or byok; default hosted)."
		conflict    = "409 (byok mode, BYOK not configured)"
		unavailable = "503 (BYOK not available)"
		forbidden   = "403 (byok mode with a key that is not dashboard-issued)"
	)
	without := warmUp.with("")
	s.rule("4.1/shape", "All five are required. No additional properties.", getStatus.is(200))
	s.rule("4.2/body-absent", "Body is optional.", without.is(200).holds("mode", "hosted"))
	s.rule("4.2/mode-absent", modes, warmUp.with(`{}`).is(200).holds("mode", "hosted"))
	s.rule("4.2/mode-hosted", modes, warmUp.is(200).holds("mode", "hosted"))
	s.rule("4.2/byok-mode", "The byok mode requires BYOK to be configured and a dashboard-issued key.",
		setBYOK.is(200), byokWarmUp.is(200).holds("mode", "byok"))
	s.rule("4.2/byok-not-configured", conflict, noBYOK, byokWarmUp.is(409))
	s.rule("4.2/byok-cleared", conflict, setBYOK.is(200), clearBYOK.is(200), byokWarmUp.is(409))
	s.rule("4.2/byok-of-another-key", conflict, setBYOK.is(200).by(another), byokWarmUp.is(409))
	s.rule("4.2/byok-unavailable", unavailable, setBYOK.is(200), storeOff, byokWarmUp.is(503))
	s.rule("4.2/hosted-without-byok", unavailable, storeOff, warmUp.is(200))
	s.rule("4.2/byok-forbidden", forbidden, byokWarmUp.is(403).by(undashboard)) // before 409
	s.rule("4.2/hosted-allowed", forbidden, without.is(200).by(undashboard), warmUp.is(200).by(undashboard))
}
