"""Bridges: listen with one protocol and forward all requests with another.

May import: public, top, protocols, urls, aio, and the carriers of observe.
"""
