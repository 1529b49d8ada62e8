-- People who may log in.
CREATE TABLE account (
    id INTEGER NOT NULL,
    name VARCHAR(80) DEFAULT 'nobody?',
    PRIMARY KEY (id)
);

CREATE INDEX account_name ON account (name);
