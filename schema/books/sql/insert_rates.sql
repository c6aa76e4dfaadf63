INSERT INTO rates (account_id, base, currency, day, rate, source, declared_at)
