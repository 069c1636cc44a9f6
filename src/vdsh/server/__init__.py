"""The HTTP service: search, encode and explain over JSON, and the page.

`app` puts the application together (`create_app`), `run` starts it in one or several `workers`, at
sockets of `sharing`. A request comes through `connections` (slow clients), `guard` (what every
request passes: `tokens`, `limits`, `log`, `metrics`) and `stores` (which one is asked) to the
routes: `routes`, `document_routes`, `bulk` (streams of documents), `explain_routes`, `map_routes`,
`state_routes` and `manual` (the OpenAPI pages). Those read `bodies`, give what `answers` describes,
and ask a store through `asked`, `pool` and `text_queue`.
"""
