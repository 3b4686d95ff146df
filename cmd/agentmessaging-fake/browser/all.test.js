// Every test in one process, which shares one Chromium.
import './tests/traffic.test.js';
import './tests/snippets.test.js';
import './tests/keys.test.js';
import './tests/limits.test.js';
import './tests/agents.test.js';
import './tests/faults.test.js';
import './tests/world.test.js';
import './tests/connection.test.js';
import './tests/story.test.js';
import './tests/hostile.test.js';
import './tests/keyboard.test.js';
import './tests/looks.test.js';
import './tests/load.test.js';
import './tests/tabs.test.js';
import './tests/long.test.js';
