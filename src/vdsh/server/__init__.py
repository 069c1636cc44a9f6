"""The HTTP service: search, encode and explain over JSON, and the page.

`app` puts the application together (`create_app`), `run` starts it in one or several `workers`.
A request comes through `connections` (slow clients) and `guard` (what every request passes: `auth`,
`limits`, `log`, `metrics`) to the routes: `routes`, `document_routes`, `explain_routes`,
`map_routes`, `state_routes` and `manual` (the OpenAPI pages). Those read `bodies`, give what
`answers` describes, and ask the store through `asked`, `pool` and `text_queue`.
"""
